import { metricsOf } from "../support/metrics-of.ts";
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { Random } from "../../simulator/answer/random.ts";
import {
  longStreams,
  planCall,
  wholeMix,
  type MixPart,
  type PlannedCall,
} from "../support/ledger-truth-mix.ts";
import { ProcessBench, until, untilStored } from "../support/ledger-truth-process.ts";
import { checkLedger, sumRows, type LedgerReport } from "../support/ledger-truth.ts";
import { lockDatabase } from "../support/lock-database.ts";
import type { ServingProcess } from "../support/sluice-process.ts";

const streams = 50;
const shortCallers = 16;
const shortCalls = 400;
/** At the simulator's pace, streams of two seconds. */
const twoSeconds: readonly MixPart[] = [
  { name: "two seconds", share: 1, alias: "chat", isStreamed: true, tokens: [100, 100] },
];

let bench: ProcessBench;
beforeEach(async () => {
  bench = await ProcessBench.create({
    keys: streams + shortCallers,
    simulator: { tokensPerSecond: 50 },
    sections: {
      // Rows are queued: none is in the database when the signal arrives.
      ledger: "{ flush_interval: 1m, batch_rows: 10000 }",
      shutdown: "{ pre_stop: 0s, drain_timeout: 20s }",
      overload: "{ loop_delay: 10s }",
    },
  });
});
afterEach(async () => {
  await bench[Symbol.asyncDispose]();
});

test(`SIGTERM with ${streams} open streams and queued rows completes all of them`, async () => {
  await using serving = await bench.serve();
  await makeShortCalls(serving);
  const streaming = openStreams(serving, twoSeconds);
  await until("the streams are open", () => bench.simulator.openCalls >= streams);
  expect(await queuedRows(serving)).toBeGreaterThan(shortCalls * 0.9);
  expect(rowsStored()).toBe(0);
  serving.signal("SIGTERM");
  await streaming;
  expect(await serving.exited).toBe(0);
  const report = await checkStored();
  expect(report.outcomes["completed: completed, upstream"]).toBeGreaterThan(streams + 100);
});

test("streams that outlast the drain time fail with an error and are counted as delivered", async () => {
  await reconfigure("drain_timeout: 20s", "drain_timeout: 1s");
  await using serving = await bench.serve();
  await makeShortCalls(serving);
  const streaming = openStreams(serving, longStreams);
  await until("the streams are open", () => bench.simulator.openCalls >= streams);
  serving.signal("SIGTERM");
  await streaming;
  expect(await serving.exited).toBe(0);
  await checkStored();
  const long = bench.calls.filter(({ part }) => part === "long stream");
  expect(long).toHaveLength(streams);
  expect(new Set(long.map(({ saw, status }) => `${saw} ${status}`))).toEqual(
    new Set(["failed 503"]),
  );
});

test("rows that the database refuses at the end are stored by the next start", async () => {
  await using serving = await bench.serve();
  await makeShortCalls(serving);
  const streaming = openStreams(serving, twoSeconds);
  await until("the streams are open", () => bench.simulator.openCalls >= streams);
  const lock = lockDatabase(bench.database);
  serving.signal("SIGTERM");
  await streaming;
  await serving.exited;
  expect(serving.text()).not.toContain("usage is lost");
  lock.close();
  expect(rowsStored()).toBe(0);
  await reconfigure("flush_interval: 1m", "flush_interval: 100ms");
  await using next = await bench.serve();
  await untilStored(next);
  next.signal("SIGTERM");
  expect(await next.exited).toBe(0);
  await checkStored();
});

async function reconfigure(before: string, after: string): Promise<void> {
  const { configPath } = bench;
  await Bun.write(configPath, readFileSync(configPath, "utf8").replace(before, after));
}

function nextOf(mix: readonly MixPart[], name: string, calls: number) {
  const random = new Random(calls);
  let planned = 0;
  return (): PlannedCall | undefined => {
    if (planned === calls) return undefined;
    planned += 1;
    return planCall(mix, random, `${name}${planned}`);
  };
}

function makeShortCalls(serving: ServingProcess): Promise<void> {
  const mix = wholeMix.map(({ tokens, ...part }) =>
    tokens === undefined ? part : { ...part, tokens: [1, 5] as const },
  );
  const keys = { from: streams, count: shortCallers };
  return bench.call(serving, keys, nextOf(mix, "s", shortCalls));
}

function openStreams(serving: ServingProcess, mix: readonly MixPart[]): Promise<void> {
  return bench.call(serving, { from: 0, count: streams }, nextOf(mix, "l", streams));
}

async function queuedRows({ adminUrl }: ServingProcess): Promise<number> {
  const metrics = await metricsOf(adminUrl);
  return Number(/^sluice_ledger_queue_rows (\d+)$/m.exec(metrics)?.[1]);
}

function rowsStored(): number {
  using database = new Database(bench.database, { readonly: true });
  return (
    database.query<{ rows: number }, []>("SELECT count(*) AS rows FROM usage").get()?.rows ?? 0
  );
}

async function checkStored(): Promise<LedgerReport> {
  const { rows, rollUps } = await bench.stored();
  const report = checkLedger({ calls: bench.calls, rows, truth: bench.simulator.truth.entries });
  expect(report.problems).toEqual([]);
  expect(report.calls).toBe(streams + shortCalls);
  expect(rows.length).toBeGreaterThan((streams + shortCalls) * 0.98);
  expect(rollUps).toEqual(sumRows(rows));
  const ends = Object.keys(report.outcomes);
  expect(ends.filter((name) => /lost|interrupted|turned-away/.test(name))).toEqual([]);
  return report;
}
