import type { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { join } from "node:path";
import { listProcessFolders } from "../../src/ledger/spool/process-folder.ts";
import { Random } from "../../simulator/answer/random.ts";
import {
  canMount,
  canTrace,
  limitFileSize,
  makeReadOnly,
  mountDisk,
} from "../support/ledger-truth-disk.ts";
import { planCall, wholeMix, type PlannedCall } from "../support/ledger-truth-mix.ts";
import {
  ProcessBench,
  until,
  untilStored,
  type ProcessBenchOptions,
} from "../support/ledger-truth-process.ts";
import { checkLedger, sumRows, type LedgerReport } from "../support/ledger-truth.ts";
import { lockDatabase } from "../support/lock-database.ts";
import { testNeeding, testWhere } from "../support/requirement.ts";
import { runSluice, type ServingProcess } from "../support/sluice-process.ts";

const callers = 24;
const testMounting = testWhere(canMount, "small disks cannot be mounted");

testMounting("a full disk under the spool turns calls away and loses none", async () => {
  using disk = mountDisk("1m");
  await suffer({ dataDir: disk.path }, () => ({ begin: disk.fill, end: disk.free }));
});

testMounting("a full disk under spool and database turns calls away and loses none", async () => {
  using disk = mountDisk("12m");
  const places = { dataDir: disk.path, database: join(disk.path, "sluice.db") };
  await suffer(places, () => ({ begin: disk.fill, end: disk.free }));
});

testMounting("a locked database fills the disk with the spool, and loses no call", async () => {
  using disk = mountDisk("320k");
  await suffer({ dataDir: disk.path }, (_, { database }) => {
    let lock: Database | undefined;
    return {
      begin: () => void (lock = lockDatabase(database)),
      end: () => lock?.close(),
    };
  });
});

testMounting(
  "what ended while the spool was full outlives a kill as soon as there is room",
  async () => {
    using disk = mountDisk("320k");
    await using bench = await ProcessBench.create({
      keys: callers,
      simulator: { tokensPerSecond: 100 },
      dataDir: disk.path,
    });
    await using serving = await bench.serve();
    const load = new Load(bench, serving);
    await until("calls end", () => bench.calls.length > 100);
    using lock = lockDatabase(bench.database);
    await until("readiness is false", async () => (await readiness(serving)).status === 503);
    await until("calls are turned away", () => turnedAway(bench) > 100);
    await load.stop();
    await bench.untilUpstreamIsFree();
    disk.resize("4m");
    await until("readiness is true", async () => (await readiness(serving)).status === 200);
    serving.kill();
    await serving.exited;
    lock.run("ROLLBACK");
    await using next = await bench.serve();
    await untilStored(next);
    next.signal("SIGTERM");
    expect(await next.exited).toBe(0);
    await checkAll(bench, serving);
  },
);

testNeeding("prlimit")("calls are refused while files cannot grow, and none is lost", async () => {
  await suffer({}, ({ processPid }) => ({
    begin: () => limitFileSize(processPid, 4_096),
    end: () => limitFileSize(processPid),
  }));
});

testWhere(canTrace, "system calls cannot be traced")(
  "a spool that becomes read-only turns calls away and loses none",
  async () => {
    await suffer({}, ({ processPid }, { folder }) => {
      const names = Array.from({ length: 99 }, (_, index) => String(index + 1).padStart(8, "0"));
      const spool = join(folder, "data", "spool");
      const [own = ""] = listProcessFolders(spool);
      const paths = names.map((name) => join(own, `${name}.spool`));
      let end = (): Promise<void> => Promise.resolve();
      return {
        begin: async () => {
          end = await makeReadOnly(processPid, paths);
        },
        end: () => end(),
      };
    });
  },
);

testMounting("a read-only data directory is named at the start", async () => {
  using disk = mountDisk("1m");
  await using bench = await ProcessBench.create({ keys: 1, dataDir: disk.path });
  disk.makeReadOnly();
  const { exitCode, errors } = await runSluice(["serve", "--config", bench.configPath]);
  expect(exitCode).toBe(1);
  expect(errors).toContain("cannot start");
  expect(errors).toContain(disk.path);
  expect(errors).toMatch(/read-only/i);
  expect(errors).not.toContain("    at ");
});

interface Trouble {
  readonly begin: () => void | Promise<void>;
  readonly end: () => void | Promise<void>;
}

/** Makes calls all the time, while the fault begins and ends. */
async function suffer(
  places: Pick<ProcessBenchOptions, "dataDir" | "database">,
  troubleOf: (serving: ServingProcess, bench: ProcessBench) => Trouble,
): Promise<void> {
  const simulator = { tokensPerSecond: 100 };
  await using bench = await ProcessBench.create({ keys: callers, simulator, ...places });
  await using serving = await bench.serve();
  const trouble = troubleOf(serving, bench);
  const load = new Load(bench, serving);
  await until("calls end", () => bench.calls.length > 100);
  await trouble.begin();
  await until("readiness is false", async () => (await readiness(serving)).status === 503);
  expect((await readiness(serving)).text).toContain("usage cannot be recorded");
  await until("calls are turned away", () => turnedAway(bench) > 200);
  expect(await refusalOf(bench, serving)).toMatchObject({ code: "model_unavailable" });
  await trouble.end();
  await until("readiness is true", async () => (await readiness(serving)).status === 200);
  const before = bench.calls.length;
  await until("calls end again", () => bench.calls.length > before + 100);
  await load.stop();
  await untilStored(serving);
  serving.signal("SIGTERM");
  expect(await serving.exited).toBe(0);
  await checkAll(bench, serving);
}

async function checkAll(bench: ProcessBench, serving: ServingProcess): Promise<void> {
  const { rows, rollUps } = await bench.stored();
  const report = checkLedger({ calls: bench.calls, rows, truth: bench.simulator.truth.entries });
  process.stdout.write(`${Bun.inspect(summary(report, bench))}\n`);
  expect(report.problems).toEqual([]);
  expect(rollUps).toEqual(sumRows(rows));
  expect(Object.keys(report.outcomes).filter((name) => /lost|interrupted/.test(name))).toEqual([]);
  const lines = serving.text().split("\n");
  const about = (what: string) => lines.filter((line) => line.includes(what)).length;
  expect(about("the spool cannot be written; calls are refused until it can")).toBe(1);
  // A killed process may take this line with it: it turns ready first.
  const endedByItself = (await serving.exited) === 0;
  if (endedByItself) expect(about("the spool can be written again")).toBe(1);
  expect(about("unhandled")).toBe(0);
  expect(about("usage is lost")).toBe(0);
}

function summary({ calls, rows, missing, extra }: LedgerReport, bench: ProcessBench) {
  return { calls, rows, missing, extra, turnedAway: turnedAway(bench) };
}

function turnedAway({ calls }: ProcessBench): number {
  return calls.filter(({ saw }) => saw === "turned-away").length;
}

/** Callers that make calls until they are stopped. */
class Load {
  #isStopped = false;
  readonly #calling: Promise<void>;

  constructor(bench: ProcessBench, serving: ServingProcess) {
    const random = new Random(5);
    let planned = 0;
    const next = (): PlannedCall | undefined => {
      if (this.#isStopped) return undefined;
      planned += 1;
      return planCall(wholeMix, random, `d${planned}`);
    };
    this.#calling = bench.call(serving, { from: 0, count: callers }, next);
  }

  stop(): Promise<void> {
    this.#isStopped = true;
    return this.#calling;
  }
}

async function readiness({ adminUrl }: ServingProcess) {
  const response = await fetch(`${adminUrl}/readyz`);
  return { status: response.status, text: await response.text() };
}

async function refusalOf(bench: ProcessBench, serving: ServingProcess): Promise<unknown> {
  const response = await bench.fetch(serving, planCall(wholeMix, new Random(1), "refused"));
  expect(response.status).toBe(503);
  expect(response.headers.get("retry-after")).toBe("5");
  const { error } = (await response.json()) as { readonly error: { readonly message: string } };
  expect(error.message).toContain("cannot record usage");
  return error;
}
