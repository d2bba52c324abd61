import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { errorShapeProblem } from "../http/error-shape.ts";
import { isComplete } from "../support/requirement.ts";
import { startBombGateway, type BombGateway } from "./bomb-gateway.ts";
import { bombs, heavyBodies, type Bomb } from "./bombs.ts";

/** How long the loop is held and how much memory it takes is measured by `npm run bombs`. */

/** Of each body, expanded: a part of what may be sent, so that the suite stays quick. */
const bombBytes = (isComplete ? 5 : 2) * 1024 * 1024;

let gateway: BombGateway;
beforeAll(async () => {
  gateway = await startBombGateway();
});
afterAll(() => gateway[Symbol.asyncDispose]());

const small: Bomb = {
  name: "small",
  path: "/v1/chat/completions",
  encoding: undefined,
  plainBytes: 0,
  body: new TextEncoder().encode(
    JSON.stringify({
      model: "chat-model",
      messages: [{ role: "user", content: "echo: still here" }],
    }),
  ),
};

describe("refused in OpenAI's error shape, and the gateway answers afterwards:", () => {
  test.each(bombs.map((plan) => [plan.name, plan] as const))("%s", async (_, plan) => {
    const answer = await gateway.send(plan.make(bombBytes));
    expect(answer.status).toBeOneOf([400, 413]);
    expect(errorShapeProblem(answer.headers, answer.text)).toBeUndefined();
    // What the caller sent is not sent back to it.
    expect(answer.text.length).toBeLessThan(2_000);
    const next = await gateway.send(small);
    expect(next.status).toBe(200);
    expect(next.text).toContain("still here");
  });
});

test("token ids that stand for 20 times their size are refused where an upstream takes only text", async () => {
  const plan = bombs.find(({ name }) => name === "token ids of 128 spaces");
  if (plan === undefined) throw new Error("the bomb has gone");
  await using bedrock = await startBombGateway("bedrock");
  const answer = await bedrock.send(plan.make(bombBytes));
  expect(answer.status).toBe(413);
  expect(errorShapeProblem(answer.headers, answer.text)).toBeUndefined();
  expect(answer.text).toContain("more than 16777216 bytes of text");
  expect((await bedrock.send(small)).status).toBe(200);
});

describe("large and honest, and served:", () => {
  test.each(heavyBodies.map((plan) => [plan.name, plan] as const))("%s", async (_, plan) => {
    const answer = await gateway.send(plan.make(bombBytes));
    expect([answer.status, answer.status === 200 ? "" : answer.text]).toEqual([200, ""]);
  });
});

test("twenty bombs at once raise memory by a small multiple of one, not of what they expand to", async () => {
  const plan = bombs.find(({ name }) => name === "gzip of empty lists");
  if (plan === undefined) throw new Error("the bomb has gone");
  const bomb = plan.make(50 * 1024 * 1024);
  expect(bomb.plainBytes).toBeGreaterThan(100_000_000);
  gateway.resetPeak();
  const before = gateway.memory().residentBytes;
  const answers = await Promise.all(Array.from({ length: 20 }, () => gateway.send(bomb)));
  for (const { status } of answers) expect(status).toBeOneOf([400, 413]);
  // Without the bounds: 20 times 32 MiB of text and several gigabytes of lists.
  expect(gateway.memory().peakBytes - before).toBeLessThan(400_000_000);
});
