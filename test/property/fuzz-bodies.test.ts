import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { errorBodyProblem, errorShapeProblem } from "../http/error-shape.ts";
import { parseStream } from "../support/bodies.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { runsOf } from "../support/requirement.ts";
import { fuzzedBody, type FuzzedBody } from "./mutated-bodies.ts";

const unhandled: unknown[] = [];
const onUnhandled = (error: unknown): void => void unhandled.push(error);

let gateway: TestGateway;
beforeAll(async () => {
  process.on("unhandledRejection", onUnhandled);
  gateway = await startGateway();
});
afterAll(async () => {
  process.off("unhandledRejection", onUnhandled);
  await gateway[Symbol.asyncDispose]();
});

/** Bodies sent concurrently, over kept-alive connections. */
const together = 16;
const statuses = new Map<number, number>();

async function problemWith({ path, bytes }: FuzzedBody): Promise<string | undefined> {
  const response = await gateway.post(path, "", { body: bytes });
  const text = await response.text();
  const { status, headers } = response;
  statuses.set(status, (statuses.get(status) ?? 0) + 1);
  if (status !== 200) {
    const isCallers = status >= 400 && status < 500;
    const problem = isCallers ? errorShapeProblem(headers, text) : "not the caller's fault";
    return problem === undefined ? undefined : `${status} ${problem}: ${text}`;
  }
  if (!headers.get("content-type")?.startsWith("text/event-stream")) {
    return text.startsWith(`{"`) ? undefined : `200 without JSON: ${text.slice(0, 200)}`;
  }
  const { chunks, isDone } = parseStream(text);
  if (isDone) return undefined;
  return `a broken stream: ${errorBodyProblem(JSON.stringify(chunks.at(-1))) ?? text.slice(-300)}`;
}

test("no body, however spoiled, gets anything but an answer or OpenAI's error", async () => {
  const runs = runsOf(320);
  const bodies = fc.array(fuzzedBody, { minLength: together, maxLength: together });
  await fc.assert(
    fc.asyncProperty(bodies, async (batch) => {
      const problems = await Promise.all(batch.map(problemWith));
      expect(problems.filter((problem) => problem !== undefined)).toEqual([]);
    }),
    { numRuns: runs, endOnFailure: true },
  );
  const sent = [...statuses.values()].reduce((sum, count) => sum + count, 0);
  expect(sent).toBeGreaterThanOrEqual(runs * together);
  // Bodies that are all refused or all accepted would test only half of the gateway.
  expect(statuses.get(200) ?? 0).toBeGreaterThan(sent / 20);
  expect(statuses.get(400) ?? 0).toBeGreaterThan(sent / 4);
}, 180_000);

test("nothing is left open afterwards, nothing is unhandled and no error is in the log", async () => {
  const rows = await gateway.usage();
  expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
  expect(gateway.simulator.openCalls).toBe(0);
  expect(unhandled).toEqual([]);
  expect(gateway.log.filter((line) => line.includes(`"level":"error"`))).toEqual([]);
});
