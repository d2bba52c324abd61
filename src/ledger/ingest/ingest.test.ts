import { expect, test } from "bun:test";
import { mkdirSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import {
  closedCall,
  FallibleStore,
  ledgerFlow,
  LedgerLog,
  openedCall,
  spoolNames,
  TestFolder,
} from "../../../test/support/ledger-fixtures.ts";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { StorageUnavailable } from "../../store/errors.ts";
import { systemFiles, type SpoolFiles } from "../spool/spool-files.ts";
import type { SpoolSettings } from "../spool/spool.ts";
import { SpoolWriter } from "../spool/spool-writer.ts";
import { Ingest } from "./ingest.ts";

/** Writers and ingests on one folder. */
class IngestBench implements AsyncDisposable {
  readonly root = new TestFolder();
  readonly store = new FallibleStore();
  readonly clock = new ManualClock();
  readonly log = new LedgerLog();
  readonly #started: (() => Promise<void>)[] = [];

  writer(settings: Partial<SpoolSettings> = {}, files: SpoolFiles = systemFiles): SpoolWriter {
    const { clock, log: on, store: direct } = this;
    const writer = new SpoolWriter({
      root: this.root.path,
      name: "1-1700000000000-7",
      settings: { ...ledgerFlow, ...settings },
      clock,
      on,
      direct,
      files,
      atTurnEnd: (write) => write(),
    });
    this.#started.push(() => writer.shutDown());
    return writer;
  }

  ingest(files: SpoolFiles = systemFiles): Ingest {
    const { clock, log: on, store } = this;
    const common = { root: this.root.path, settings: ledgerFlow, clock, on, files };
    const ingest = new Ingest({ ...common, store });
    this.#started.push(() => ingest.stop());
    return ingest;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const stop of this.#started) await stop();
    this.root[Symbol.dispose]();
  }
}

const unavailable = new StorageUnavailable("locked");

async function until(isTrue: () => boolean): Promise<void> {
  for (let tries = 0; tries < 2_000 && !isTrue(); tries += 1) await Bun.sleep(5);
  expect(isTrue()).toBe(true);
}

test("rows of a running process are stored while its calls go on, and none is interrupted", async () => {
  await using bench = new IngestBench();
  const [writer, ingest] = [bench.writer({ segmentBytes: 2_000 }), bench.ingest()];
  for (let call = 0; call < 100; call += 1) {
    void writer.open(openedCall(`req_${call}`));
    if (call % 10 === 0) await ingest.flush();
    if (call > 4) void writer.close(closedCall(`req_${call - 5}`));
  }
  await ingest.flush();
  expect(bench.store.rows.size).toBe(95);
  expect(new Set([...bench.store.rows.values()].map(({ outcome }) => outcome))).toEqual(
    new Set(["completed"]),
  );
  expect(spoolNames(bench.root.path).length).toBeLessThan(4);
  expect(ingest.isReplaying).toBe(false);
});

test("the folder of a process that ended is removed, that of a running one is kept", async () => {
  await using bench = new IngestBench();
  const [ended, running] = [bench.writer(), bench.writer()];
  void ended.open(openedCall("req_1"));
  void running.open(openedCall("req_2"));
  const ingest = bench.ingest();
  await ended.shutDown();
  await ingest.flush();
  expect([...bench.store.rows.values()]).toMatchObject([{ id: "req_1", outcome: "interrupted" }]);
  expect(bench.log.of("replayed")).toEqual([[{ closed: 0, interrupted: 1, skippedBytes: 0 }]]);
  const kept = [basename(running.folder ?? "")];
  expect(readdirSync(bench.root.path).toSorted()).toEqual(kept);
});

test("an ingest that ends between insert and removal leaves its rows to the next, once each", async () => {
  await using bench = new IngestBench();
  const writer = bench.writer({ segmentBytes: 1_000 });
  for (let call = 0; call < 20; call += 1) {
    void writer.open(openedCall(`req_${call}`));
    if (call < 15) void writer.close(closedCall(`req_${call}`));
  }
  const fail = (): never => {
    throw new Error("the process has ended");
  };
  const first = bench.ingest({ ...systemFiles, remove: fail });
  await first.flush();
  expect(bench.store.rows.size).toBe(15);
  const files = spoolNames(bench.root.path).length;
  await first.stop();
  const second = bench.ingest();
  await second.flush();
  expect(spoolNames(bench.root.path).length).toBeLessThan(files);
  for (let call = 15; call < 20; call += 1) void writer.close(closedCall(`req_${call}`));
  await second.flush();
  await writer.shutDown();
  await second.flush();
  expect([...bench.store.rows.values()]).toEqual(
    Array.from({ length: 20 }, (_, call) => closedCall(`req_${call}`)),
  );
  expect(readdirSync(bench.root.path)).toEqual([]);
});

test("what others left does not count towards the limit of a spool", async () => {
  await using bench = new IngestBench();
  const before = bench.writer();
  for (let call = 0; call < 100; call += 1) void before.close(closedCall(`req_${call}`));
  const left = before.spoolBytes;
  await before.shutDown();
  const writer = bench.writer({ spoolLimitBytes: left });
  expect([writer.hasRoom, writer.spoolBytes]).toEqual([true, 0]);
  const ingest = bench.ingest();
  expect(ingest.leftBytes).toBe(left);
  await ingest.flush();
  expect(ingest.leftBytes).toBe(0);
});

test("a long outage with few calls does not make many small files", async () => {
  await using bench = new IngestBench();
  const writer = bench.writer();
  for (let call = 0; call < 100; call += 1) {
    void writer.open(openedCall(`req_${call}`));
    void writer.close(closedCall(`req_${call}`));
    await writer.maintain();
  }
  expect(spoolNames(bench.root.path).length).toBeLessThan(20);
  const ingest = bench.ingest();
  for (let tries = 0; tries < 3; tries += 1) {
    await ingest.flush();
    await writer.maintain();
  }
  expect([bench.store.rows.size, writer.spoolBytes]).toEqual([100, 0]);
});

test("other folders in the spool's are not touched", async () => {
  await using bench = new IngestBench();
  const other = join(bench.root.path, "copy");
  mkdirSync(other);
  systemFiles.close(systemFiles.create(join(other, "00000001.spool")));
  await bench.ingest().flush();
  expect(readdirSync(other)).toEqual(["00000001.spool"]);
});

test("a call that the database got past a broken disk does not keep its file", async () => {
  await using bench = new IngestBench();
  let isBroken = false;
  const append: SpoolFiles["append"] = (file, bytes) => {
    if (isBroken) throw new Error("EIO");
    return systemFiles.append(file, bytes);
  };
  const writer = bench.writer({}, { ...systemFiles, append });
  const ingest = bench.ingest();
  void writer.open(openedCall("req_1"));
  isBroken = true;
  void writer.close(closedCall("req_1"));
  await writer.maintain();
  expect(bench.store.rows.get("req_1")).toEqual(closedCall("req_1"));
  isBroken = false;
  for (let tries = 0; tries < 3; tries += 1) {
    await writer.maintain();
    await ingest.flush();
  }
  await writer.maintain();
  expect([writer.spoolBytes, spoolNames(bench.root.path).length]).toEqual([0, 1]);
});

test("memory is bounded while several writers go on and the database is unavailable", async () => {
  await using bench = new IngestBench();
  const writers = [1, 2, 3].map(() => bench.writer({ segmentBytes: 1_000_000 }));
  const stored = new Uint8Array(60_000);
  bench.store.insert = (rows) => {
    if (isDown) return Promise.reject(unavailable);
    for (const { id } of rows) stored[Number(id)] = (stored[Number(id)] ?? 0) + 1;
    return Promise.resolve();
  };
  let isDown = false;
  const ingest = bench.ingest();
  ingest.start();
  const memory = (): number => {
    Bun.gc(true);
    return process.memoryUsage().heapUsed / 1e6;
  };
  const call = async (from: number, to: number): Promise<void> => {
    for (let id = from; id < to; id += 1) {
      const writer = writers[id % writers.length];
      void writer?.open(openedCall(String(id)));
      void writer?.close(closedCall(String(id)));
      if (id % 100 === 0) await Bun.sleep(0);
    }
  };
  await call(0, 5_000);
  const before = memory();
  isDown = true;
  await call(5_000, 55_000);
  expect(writers.reduce((sum, { spoolBytes }) => sum + spoolBytes, 0)).toBeGreaterThan(15e6);
  const during = memory();
  isDown = false;
  await call(55_000, 60_000);
  await ingest.flush();
  expect(during - before).toBeLessThan(10);
  expect(memory() - before).toBeLessThan(10);
  expect(stored.every((times) => times >= 1)).toBe(true);
}, 180_000);

/** Opens and closes calls forever, and prints each one. */
const busyWriter = (root: string, name: string): string => `
  const { writeSync } = await import("node:fs");
  const source = ${JSON.stringify(dirname(import.meta.dir))};
  const { SpoolWriter } = await import(source + "/spool/spool-writer.ts");
  const support = ${JSON.stringify(join(import.meta.dir, "../../../test/support"))};
  const { closedCall, openedCall, ledgerFlow, LedgerLog } =
    await import(support + "/ledger-fixtures.ts");
  const { systemClock: clock } = await import(source + "/../domain/clock.ts");
  const settings = { ...ledgerFlow, segmentBytes: 8_000, sync: "group" };
  const direct = { insert: () => Promise.reject(new Error("none")) };
  const options = { root: ${JSON.stringify(root)}, name: ${JSON.stringify(name)}, settings };
  const writer = new SpoolWriter({ ...options, clock, on: new LedgerLog(), direct });
  writer.start();
  for (let call = 0; ; call += 1) {
    const id = ${JSON.stringify(name)} + "_" + call;
    await writer.open(openedCall(id));
    writeSync(1, "open " + id + "\\n");
    if (call % 3 > 0) {
      await writer.close(closedCall(id));
      writeSync(1, "closed " + id + "\\n");
    }
    // No faster than the test's ingest stores its small batches.
    if (call % 10 === 0) await Bun.sleep(5);
  }`;

/** A process that writes until it is killed. */
class BusyWriter {
  readonly #process: Bun.Subprocess<"ignore", "pipe", "inherit">;
  readonly #reading: Promise<void>;
  #printed = "";
  #lineCount = 0;

  constructor(root: string, name: string) {
    const command = [process.execPath, "-e", busyWriter(root, name)];
    this.#process = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
    this.#reading = this.#read();
  }

  /** The state and the id of each call that it printed. */
  get lines(): readonly string[] {
    return this.#printed.split("\n").slice(0, -1);
  }

  get lineCount(): number {
    return this.#lineCount;
  }

  async kill(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#process.exited;
    await this.#reading;
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder();
    for await (const piece of this.#process.stdout) {
      const text = decoder.decode(piece, { stream: true });
      this.#printed += text;
      this.#lineCount += text.split("\n").length - 1;
    }
  }
}

test("the rows of a killed writer appear while another one goes on", async () => {
  await using bench = new IngestBench();
  const [one, other] = ["1-1-1", "2-1-2"].map((name) => new BusyWriter(bench.root.path, name));
  if (one === undefined || other === undefined) throw new Error("two writers are needed");
  try {
    const ingest = bench.ingest();
    ingest.start();
    await until(() => one.lineCount > 500 && other.lineCount > 500);
    await one.kill();
    await until(() => bench.log.of("replayed").length === 1);
    checkRows(one.lines, bench.store);
    const ofOther = [...bench.store.rows.values()].filter(({ id }) => id.startsWith("2-1-2"));
    expect(ofOther.filter(({ outcome }) => outcome === "interrupted")).toEqual([]);
    const { lineCount } = other;
    await until(() => other.lineCount > lineCount + 100);
    await other.kill();
    await ingest.flush();
    checkRows(other.lines, bench.store);
    expect(readdirSync(bench.root.path)).toEqual([]);
  } finally {
    await Promise.all([one.kill(), other.kill()]);
  }
});

function checkRows(lines: readonly string[], { rows }: FallibleStore): void {
  const closed = new Set(lines.filter((line) => line.startsWith("closed")).map(idOf));
  for (const id of lines.map(idOf)) {
    const outcome = rows.get(id)?.outcome;
    // The last call may have been closed and not printed.
    const isKnown = id !== idOf(lines.at(-1) ?? "");
    if (isKnown) expect([id, outcome]).toEqual([id, closed.has(id) ? "completed" : "interrupted"]);
    else expect(["completed", "interrupted"]).toContain(outcome ?? "missing");
  }
}

function idOf(line: string): string {
  return line.split(" ")[1] ?? "";
}
