import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { answerTo, refusalTo } from "./answers.ts";
import { faults, requestMarks, type Fault } from "./faults.ts";
import { startDoubles, type Doubles } from "./start-doubles.ts";

/** A double as seen by a caller without retries. */
interface Seen {
  readonly status: number;
  readonly retryAfter: string | null;
  /** Whether the answer is complete. */
  readonly isWhole: boolean;
}

/** Far longer than a double takes to answer. */
const timeoutMs = 20_000;
/** For requests without an answer: long enough for the request to arrive. */
const shortTimeoutMs = 1_500;
const silentFaults: readonly Fault[] = ["black-hole", "slow-headers", "stall"];
const nothing: Seen = { status: 0, retryAfter: null, isWhole: false };
const whole: Seen = { status: 200, retryAfter: null, isWhole: true };

let doubles: Doubles;
beforeAll(async () => {
  doubles = await startDoubles(faults.length);
});
afterAll(() => doubles[Symbol.asyncDispose]());

const paths = {
  openai: "/v1/chat/completions",
  bedrock: "/model/double/converse-stream",
} as const;

describe.each(["openai", "bedrock"] as const)("on the wire of %s", (wire) => {
  test.each([
    ["throttle-retry-after", { status: 429, retryAfter: "5", isWhole: true }],
    ["throttle", { status: 429, retryAfter: null, isWhole: true }],
    ["error-500", { status: 500, retryAfter: null, isWhole: true }],
    ["unavailable-503", { status: 503, retryAfter: null, isWhole: true }],
    ["refused", nothing],
    ["reset", nothing],
    ["black-hole", nothing],
    ["slow-headers", nothing],
    ["stall", { status: 200, retryAfter: null, isWhole: false }],
    ["half", { status: 503, retryAfter: null, isWhole: true }],
  ] as const)(
    "a double with the fault %s shows it, counts it, and answers once it is repaired",
    async (fault, expected) => {
      const index = faults.indexOf(fault);
      const call = (waitMs = timeoutMs): Promise<Seen> =>
        ask({ port: doubles.ports[index], path: paths[wire], waitMs });
      expect(await call()).toEqual(whole);
      const waitMs = silentFaults.includes(fault) ? shortTimeoutMs : timeoutMs;
      const { failedAt: before } = await doubles.break(index, fault);
      const seen = await Promise.all([call(waitMs), call(waitMs)]);
      const { failedAt } = await doubles.repair(index);
      const healthy = seen.filter(({ status, isWhole }) => status === 200 && isWhole);
      expect(healthy).toHaveLength(fault === "half" ? 1 : 0);
      expect(seen).toContainEqual(expected);
      expect(failedAt.length - before.length).toBe(countOf(fault));
      expect(await call()).toEqual(whole);
    },
    30_000,
  );
});

/** Counts for two requests. Refused connections send none. */
function countOf(fault: Fault): number {
  if (fault === "refused") return 0;
  return fault === "half" ? 1 : 2;
}

test("marks in a request affect only that request", async () => {
  const [port] = doubles.ports;
  const waitMs = shortTimeoutMs;
  const seen = await Promise.all([
    ask({ port, path: paths.openai, text: requestMarks.hang, waitMs }),
    ask({ port, path: paths.openai, text: requestMarks.stall, waitMs }),
    ask({ port, path: paths.openai, waitMs: timeoutMs }),
  ]);
  expect(seen).toEqual([nothing, { ...whole, isWhole: false }, whole]);
});

test("an answer that stalls lacks its end, and a long stream takes seconds", () => {
  const request = { path: paths.bedrock, body: Buffer.from("{}") };
  const short = answerTo({ ...request, isLong: false });
  const long = answerTo({ ...request, isLong: true });
  expect(short.rest.at(-1)?.bytes.subarray(-5).toString()).toBe("0\r\n\r\n");
  expect(short.first.at(-1)?.bytes.subarray(-5).toString()).not.toBe("0\r\n\r\n");
  expect(long.rest.at(-1)?.afterMs).toBeGreaterThan(2_000);
});

test("a refusal on the wire of Bedrock names its exception", () => {
  const refusal = refusalTo(paths.bedrock, { status: 429 }).toString();
  expect(refusal).toContain("x-amzn-errortype: ThrottlingException\r\n");
  expect(refusalTo(paths.openai, { status: 429 }).toString()).not.toContain("amzn");
});

interface Question {
  readonly port: number | undefined;
  readonly path: string;
  readonly text?: string;
  readonly waitMs: number;
}

/** A new connection for each request: the effect of a fault on open ones is not tested here. */
async function ask({ port = 0, path, text = "", waitMs }: Question): Promise<Seen> {
  const signal = AbortSignal.timeout(waitMs);
  try {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: "POST",
      headers: { connection: "close" },
      body: JSON.stringify({ text }),
      signal,
    });
    const seen = { status: response.status, retryAfter: response.headers.get("retry-after") };
    return await response.text().then(
      () => ({ ...seen, isWhole: true }),
      () => ({ ...seen, isWhole: false }),
    );
  } catch {
    return nothing;
  }
}
