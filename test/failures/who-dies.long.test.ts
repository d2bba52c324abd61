import { readFileSync } from "node:fs";
import { expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { Random } from "../../simulator/answer/random.ts";
import { longStreams, planCall, wholeMix, type MixPart } from "../support/ledger-truth-mix.ts";
import { ProcessBench, until, untilStored } from "../support/ledger-truth-process.ts";
import { checkLedger, sumRows, type LedgerReport } from "../support/ledger-truth.ts";
import { sizeOf } from "../support/requirement.ts";
import { report } from "../support/scorecard.ts";
import {
  childrenOf,
  startServing,
  processesOf,
  type ServingProcess,
} from "../support/sluice-process.ts";
import { startValkey, type ValkeyServer } from "../support/valkey-server.ts";
import { makeProcessFolder } from "./outage-process.ts";

const processes = 3;
const streams = 30;
const callers = 16;
const kills = sizeOf({ quick: 2, all: 5, measured: 100 });
/** Short answers of all kinds. */
const shortMix = wholeMix.map(({ tokens, ...part }) =>
  tokens === undefined ? part : { ...part, tokens: [1, 12] as const },
);
const streamMix = longStreams.map((part) => ({ ...part, tokens: [60, 120] as const }));

/** Three processes under streams and short calls, until it is told to stop. */
class Load implements AsyncDisposable {
  readonly bench: ProcessBench;
  readonly serving: ServingProcess;
  readonly #limits: ValkeyServer;
  readonly #calling: Promise<unknown>;
  #planned = 0;
  #isOver = false;

  private constructor(bench: ProcessBench, serving: ServingProcess, limits: ValkeyServer) {
    this.bench = bench;
    this.serving = serving;
    this.#limits = limits;
    const random = new Random(15);
    const next = (mix: readonly MixPart[]) => () => {
      this.#planned += 1;
      return this.#isOver ? undefined : planCall(mix, random, `w-${this.#planned}`);
    };
    this.#calling = Promise.all([
      bench.call(serving, { from: 0, count: streams }, next(streamMix)),
      bench.call(serving, { from: streams, count: callers }, next(shortMix)),
    ]);
  }

  static async start(): Promise<Load> {
    const limits = await startValkey();
    const bench = await ProcessBench.create({
      keys: streams + callers,
      simulator: { tokensPerSecond: 40 },
      sections: { processes: String(processes), limits: `{ store: "${limits.url}" }` },
    });
    const serving = await bench.serve();
    await until("all processes serve", () => listeners(serving) === processes);
    const load = new Load(bench, serving, limits);
    await load.untilMoreEnded();
    return load;
  }

  /** Until more calls have ended than can have been under way. */
  async untilMoreEnded(): Promise<void> {
    const { calls } = this.bench;
    const before = calls.length;
    await until("calls end", () => calls.length > before + 2 * (streams + callers));
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#calling;
    await this.bench.untilUpstreamIsFree();
  }

  /** Ends the gateway, and compares the ledger with what callers and upstream saw. */
  async judge(): Promise<LedgerReport> {
    await this.stop();
    const { bench, serving } = this;
    await untilStored(serving);
    serving.signal("SIGTERM");
    expect(await serving.exited).toBe(0);
    const { rows, rollUps } = await bench.stored();
    const { calls, simulator } = bench;
    const judged = checkLedger({ calls, rows, truth: simulator.truth.entries });
    process.stdout.write(`${Bun.inspect(judged)}\n`);
    expect(judged).toMatchObject({ missing: 0, extra: 0, wrongEnds: 0, wrongTokens: 0 });
    expect(rollUps).toEqual(sumRows(rows));
    return judged;
  }

  /** Rows of calls whose process ended, in the database. */
  interrupted(): number {
    using database = new Database(this.bench.database, { readonly: true });
    const sql = "SELECT count(*) AS rows FROM usage WHERE outcome = 'interrupted'";
    return database.query<{ rows: number }, []>(sql).get()?.rows ?? 0;
  }

  countOf(saw: string): number {
    return this.bench.calls.filter((call) => call.saw === saw).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.serving[Symbol.asyncDispose]();
    await this.#calling;
    await this.bench[Symbol.asyncDispose]();
    await this.#limits[Symbol.asyncDispose]();
  }
}

/** Sockets that listen at the address of the processes. */
function listeners({ dataUrl }: ServingProcess): number {
  const port = Number(new URL(dataUrl).port).toString(16).toUpperCase().padStart(4, "0");
  const isListening = new RegExp(`:${port} [0-9A-F]+:0000 0A `);
  return readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .filter((line) => isListening.test(line)).length;
}

test(
  "a killed process ends its own calls alone; its calls are stored at once, and it is back",
  async () => {
    await using load = await Load.start();
    const { serving } = load;
    const backMs: number[] = [];
    for (let kill = 0; kill < kills; kill += 1) {
      const before = { lost: load.countOf("lost"), rows: load.interrupted() };
      // The oldest: callers keep their connections, so a new process has few.
      const [victim = 0] = processesOf(serving.pid);
      const killedAt = performance.now();
      process.kill(victim, "SIGKILL");
      await until("it has gone", () => listeners(serving) === processes - 1);
      await until("it is back", () => listeners(serving) === processes);
      backMs.push(performance.now() - killedAt);
      await until("its calls are stored", () => load.interrupted() > before.rows);
      await load.untilMoreEnded();
      const lost = load.countOf("lost") - before.lost;
      expect(lost).toBeGreaterThan(0);
      // Some of its callers, who had got nothing, call again at once and lose nothing more.
      expect(lost).toBeLessThan(streams + callers);
    }
    const judged = await load.judge();
    expect(judged.outcomes["completed: completed, upstream"]).toBeGreaterThan(kills * streams);
    const longestMs = Math.round(Math.max(...backMs));
    report({
      check: 15,
      name: `${kills} times kill -9 of one of ${processes} processes under load: back after, at most`,
      value: `${longestMs} ms`,
      limit: "<= 1000 ms",
      isMet: longestMs <= 1_000,
    });
  },
  60_000 + kills * 20_000,
);

test("when the parent is killed all end with it, and the next start has every call", async () => {
  await using load = await Load.start();
  const { bench, serving } = load;
  const children = childrenOf(serving.pid);
  expect(children.length).toBeGreaterThanOrEqual(processes);
  process.kill(serving.pid, "SIGKILL");
  await until("all have ended", () => children.every((pid) => !isRunning(pid)));
  await load.stop();
  await using next = await bench.serve();
  await untilStored(next);
  next.signal("SIGTERM");
  expect(await next.exited).toBe(0);
  const { rows } = await bench.stored();
  const judged = checkLedger({ calls: bench.calls, rows, truth: bench.simulator.truth.entries });
  expect(judged).toMatchObject({ missing: 0, extra: 0, wrongEnds: 0, wrongTokens: 0 });
}, 120_000);

test("processes that are asked to end while they start do", async () => {
  await using limits = await startValkey();
  const settings = `limits: { store: "${limits.url}" }`;
  await using folder = makeProcessFolder({ processes, settings });
  await using serving = await startServing(["--config", folder.configPath]);
  // The first process serves; the others are about to start.
  serving.signal("SIGTERM");
  expect(await serving.exited).toBe(0);
}, 180_000);

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
