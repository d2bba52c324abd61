import { readFileSync } from "node:fs";
import { expect, test } from "bun:test";
import { ProcessBench, until, untilStored } from "../support/ledger-truth-process.ts";
import type { ServingProcess } from "../support/sluice-process.ts";

const workers = 3;
const callers = 50;
/** Tokens of an answer, which takes about a second. */
const tokens = 60;

function createBench(): Promise<ProcessBench> {
  return ProcessBench.create({
    keys: 1,
    simulator: { tokensPerSecond: 60 },
    sections: {
      workers: String(workers),
      plans: "{ enterprise: { custom: true, idempotency: true } }",
    },
  });
}

/** Until all workers listen. */
async function serve(bench: ProcessBench): Promise<ServingProcess> {
  const serving = await bench.serve();
  const port = Number(new URL(serving.dataUrl).port).toString(16).toUpperCase();
  const listens = new RegExp(`:${port} [0-9A-F]+:0000 0A `);
  await until("all workers listen", () => {
    const sockets = readFileSync("/proc/net/tcp", "utf8").split("\n");
    return sockets.filter((line) => listens.test(line)).length === workers;
  });
  return serving;
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly isReplayed: boolean;
}

/** One of equal calls; undefined when its worker was killed. */
async function ask(
  bench: ProcessBench,
  serving: ServingProcess,
  { key, isStreamed = false }: { readonly key: string; readonly isStreamed?: boolean },
): Promise<Answer | undefined> {
  const messages = [{ role: "user", content: `count: ${tokens}` }];
  const body = { model: "chat-openai", messages, stream: isStreamed };
  const call = { path: "/v1/chat/completions", body } as const;
  try {
    const response = await bench.fetch(serving, call, { "idempotency-key": key });
    return {
      status: response.status,
      isReplayed: response.headers.has("idempotent-replayed"),
      text: (await response.text()).replaceAll(/^:.*\n\n/gm, ""),
    };
  } catch {
    return undefined;
  }
}

function askOften(
  bench: ProcessBench,
  serving: ServingProcess,
  call: { readonly key: string; readonly isStreamed?: boolean },
): Promise<readonly (Answer | undefined)[]> {
  return Promise.all(Array.from({ length: callers }, () => ask(bench, serving, call)));
}

const wholeCalls = ({ simulator }: ProcessBench): number =>
  simulator.truth.entries.filter(({ clientLeft }) => !clientLeft).length;

test(`${callers} equal calls at ${workers} workers are made and billed once`, async () => {
  await using bench = await createBench();
  {
    await using serving = await serve(bench);
    for (const isStreamed of [true, false]) {
      const before = bench.simulator.truth.size;
      const answers = await askOften(bench, serving, { key: `equal-${isStreamed}`, isStreamed });
      const texts = new Set(answers.map((answer) => answer?.text));
      expect([texts.size, bench.simulator.truth.size - before]).toEqual([1, 1]);
      expect(answers.every((answer) => answer?.status === 200)).toBe(true);
      expect(answers.filter((answer) => answer?.isReplayed === false)).toHaveLength(1);
    }
    await untilStored(serving);
  }
  expect((await bench.stored()).rows).toHaveLength(2);
}, 60_000);

test("a different call with the key of a running one is refused by every worker", async () => {
  await using bench = await createBench();
  await using serving = await serve(bench);
  const first = ask(bench, serving, { key: "reused" });
  await until("the call is made", () => bench.simulator.openCalls === 1);
  const others = await askOften(bench, serving, { key: "reused", isStreamed: true });
  expect(others.map((answer) => answer?.status)).toEqual(others.map(() => 409));
  expect([(await first)?.status, bench.simulator.truth.size]).toEqual([200, 1]);
}, 60_000);

test("when a worker is killed, who waits at others gets the answer of one new call", async () => {
  await using bench = await createBench();
  await using serving = await serve(bench);
  const asked = askOften(bench, serving, { key: "killed" });
  await until("the call is made", () => bench.simulator.openCalls === 1);
  process.kill(serving.workerPid, "SIGKILL");
  const answered = (await asked).filter((answer) => answer !== undefined);
  expect(answered.length).toBeGreaterThan(0);
  expect(answered.map(({ status }) => status)).toEqual(answered.map(() => 200));
  expect(wholeCalls(bench)).toBe(1);
}, 60_000);

test("when control is killed, the call goes on, and no second one is made beside it", async () => {
  await using bench = await createBench();
  await using serving = await serve(bench);
  const asked = askOften(bench, serving, { key: "kept" });
  await until("the call is made", () => bench.simulator.openCalls === 1);
  process.kill(serving.controlPid, "SIGKILL");
  // Who waits at another worker cannot be told now whether the call is made.
  const statuses = new Set((await asked).map((answer) => answer?.status));
  expect([...statuses].filter((status) => status !== 200 && status !== 503)).toEqual([]);
  await until("control has stored the answer", async () => {
    const again = await askOften(bench, serving, { key: "kept" });
    return again.every((answer) => answer?.status === 200);
  });
  expect(bench.simulator.truth.size).toBe(1);
}, 60_000);
