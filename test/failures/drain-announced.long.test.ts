import { afterEach, beforeEach, expect, test } from "bun:test";
import { Random } from "../../simulator/answer/random.ts";
import { RawConnection } from "../http/raw-connection.ts";
import { errorOf, parseStream } from "../support/bodies.ts";
import { longStreams, planCall, type PlannedCall } from "../support/ledger-truth-mix.ts";
import { ProcessBench, until } from "../support/ledger-truth-process.ts";
import type { ServingProcess } from "../support/sluice-process.ts";

let bench: ProcessBench;
const start = async (shutdown: string): Promise<ServingProcess> => {
  bench = await ProcessBench.create({
    keys: 1,
    simulator: { tokensPerSecond: 20 },
    sections: { shutdown },
  });
  return bench.serve();
};
let serving: ServingProcess | undefined;
beforeEach(() => {
  serving = undefined;
});
afterEach(async () => {
  await serving?.[Symbol.asyncDispose]();
  await bench[Symbol.asyncDispose]();
});

const streamOf = (tokens: number): typeof longStreams =>
  longStreams.map((part) => ({ ...part, tokens: [tokens, tokens] as const }));
const call = (): PlannedCall => planCall(streamOf(5), new Random(1), "announced");
const tenSeconds = (): PlannedCall => planCall(streamOf(200), new Random(1), "beside");
const longCall = (): PlannedCall => planCall(longStreams, new Random(1), "long");

async function statusOf(url: string): Promise<number> {
  const response = await fetch(url);
  await response.text();
  return response.status;
}

const isNotReady = (url: string) => async (): Promise<boolean> =>
  (await statusOf(`${url}/readyz`)) === 503;

test("a gateway that is asked to end announces it and still serves before it refuses calls", async () => {
  serving = await start("{ pre_stop: 3s, drain_timeout: 30s }");
  const { dataUrl, adminUrl } = serving;
  using kept = await RawConnection.open(Number(new URL(dataUrl).port));
  const ask = (): Promise<{ readonly headers: Headers; readonly status: number } | undefined> => {
    kept.write("GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n");
    return kept.answer();
  };
  expect((await ask())?.headers.get("connection")).not.toBe("close");
  const before = await bench.fetch(serving, call());
  expect(before.headers.get("connection")).not.toBe("close");
  await before.text();
  // While it runs, calls are refused rather than not connected.
  const running = await bench.fetch(serving, tenSeconds());
  const whole = running.text();
  serving.signal("SIGTERM");
  const askedAt = performance.now();
  await until("it is not ready", isNotReady(dataUrl));
  const notReadyMs = performance.now() - askedAt;
  expect(await statusOf(`${adminUrl}/readyz`)).toBe(503);
  expect(await statusOf(`${dataUrl}/healthz`)).toBe(200);
  expect(notReadyMs).toBeLessThan(1_000);
  // A kept-alive connection gets one more answer and is closed.
  const last = await ask();
  expect([last?.status, last?.headers.get("connection")]).toEqual([503, "close"]);
  await until("the connection is closed", () => kept.isClosed);
  let served = 0;
  for (;;) {
    const response = await bench.fetch(serving, call());
    expect(response.headers.get("connection")).toBe("close");
    if (response.status === 503) {
      expect((await errorOf(response)).code).toBe("model_unavailable");
      break;
    }
    expect(response.status).toBe(200);
    expect(parseStream(await response.text()).isDone).toBe(true);
    served += 1;
  }
  expect(performance.now() - askedAt).toBeGreaterThan(2_900);
  expect(served).toBeGreaterThan(1);
  expect(parseStream(await whole).isDone).toBe(true);
  expect(await serving.exited).toBe(0);
  const { rows } = await bench.stored();
  expect(rows.map(({ outcome }) => outcome)).toEqual(
    Array.from({ length: served + 2 }, () => "completed"),
  );
});

test("SIGINT, as from a terminal, skips the announcement and refuses calls at once", async () => {
  serving = await start("{ pre_stop: 10m, drain_timeout: 30s }");
  const response = await bench.fetch(serving, call());
  serving.signal("SIGINT");
  const port = serving;
  await until("calls are refused", async () => (await bench.fetch(port, call())).status === 503);
  expect(parseStream(await response.text()).isDone).toBe(true);
  expect(await serving.exited).toBe(0);
});

test("a SIGINT after a SIGTERM ends the announcement and every stream at once", async () => {
  serving = await start("{ pre_stop: 10m, drain_timeout: 10m }");
  const { processPid } = serving;
  const response = await bench.fetch(serving, longCall());
  const reading = response.text().catch(() => "cut");
  serving.signal("SIGTERM");
  await until("it is not ready", isNotReady(serving.dataUrl));
  await Bun.sleep(50);
  serving.signal("SIGINT");
  expect(await serving.exited).toBe(1);
  await reading;
  expect(() => process.kill(processPid, 0)).toThrow("ESRCH");
});

test("a stream that outlasts announcement and drain time ends with an error frame and a row", async () => {
  serving = await start("{ pre_stop: 500ms, drain_timeout: 500ms }");
  const response = await bench.fetch(serving, longCall());
  const reading = response.text();
  serving.signal("SIGTERM");
  expect(await serving.exited).toBe(0);
  const { chunks, isDone } = parseStream(await reading);
  expect(isDone).toBe(false);
  expect(chunks.at(-1)?.error).toMatchObject({ type: "server_error", code: "model_unavailable" });
  expect(chunks.at(-1)?.error?.message).toContain("shutting down");
  const { rows } = await bench.stored();
  expect(rows.map(({ outcome, status }) => [outcome, status])).toEqual([["failed", 503]]);
  expect(rows[0]?.outputTokens).toBeGreaterThan(5);
});
