import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  closedCall,
  copySpools,
  FallibleStore,
  ledgerFlow,
  LedgerLog,
  openedCall,
  spoolNames,
  spoolPaths,
  TestFolder,
} from "../../test/support/ledger-fixtures.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { RefusedRows, StorageUnavailable } from "../store/errors.ts";
import { Ledger, type LedgerFlow } from "../../test/support/whole-ledger.ts";

/** A ledger in a temporary folder. */
class LedgerBench implements AsyncDisposable {
  readonly root = new TestFolder();
  readonly store = new FallibleStore();
  readonly clock = new ManualClock({ wallMs: 1_700_000_060_000 });
  readonly #ledgers: Ledger[] = [];
  #folders = 0;
  #log = new LedgerLog();

  get log(): LedgerLog {
    return this.#log;
  }

  open(flow: Partial<LedgerFlow> = {}, folder = this.newFolder()): Ledger {
    this.#log = new LedgerLog();
    const { store, clock } = this;
    const settings = { ...ledgerFlow, ...flow };
    const ledger = new Ledger({ folder, store, settings, clock, on: this.#log });
    this.#ledgers.push(ledger);
    return ledger;
  }

  newFolder(): string {
    this.#folders += 1;
    const folder = join(this.root.path, String(this.#folders));
    mkdirSync(folder);
    return folder;
  }

  /** Copies the latest folder as if the process had died now. */
  afterKill(): string {
    const from = join(this.root.path, String(this.#folders));
    const to = this.newFolder();
    copySpools(from, to);
    return to;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const ledger of this.#ledgers) await ledger.shutDown();
    this.root[Symbol.dispose]();
  }
}

function hasRoom(ledger: Ledger): boolean {
  return ledger.calls.hasRoom;
}

const unavailable = new StorageUnavailable("database is locked");

async function until(isTrue: () => boolean): Promise<void> {
  for (let tries = 0; tries < 1_000 && !isTrue(); tries += 1) await Bun.sleep(5);
  expect(isTrue()).toBe(true);
}

test("closed calls are stored, and the spool is empty once all are", async () => {
  await using bench = new LedgerBench();
  const ledger = bench.open();
  for (let call = 0; call < 25; call += 1) {
    void ledger.calls.open(openedCall(`req_${call}`));
    void ledger.calls.close(closedCall(`req_${call}`));
  }
  expect(ledger.waiting).toBe(25);
  await ledger.flush();
  expect([...bench.store.rows.values()]).toEqual(
    Array.from({ length: 25 }, (_, call) => closedCall(`req_${call}`)),
  );
  expect(bench.store.batchSizes).toEqual([10, 10, 5]);
  expect([ledger.waiting, ledger.calls.spoolBytes]).toEqual([0, 0]);
});

test("a started ledger stores rows within its flush interval", async () => {
  await using bench = new LedgerBench();
  const ledger = bench.open();
  ledger.start();
  void ledger.calls.close(closedCall("req_1"));
  await until(() => bench.store.rows.size === 1);
  for (let call = 10; call < 30; call += 1) void ledger.calls.close(closedCall(`req_${call}`));
  await until(() => bench.store.rows.size === 21);
});

test("rows wait while the database is unavailable, and its recovery is reported", async () => {
  await using bench = new LedgerBench();
  const ledger = bench.open();
  bench.store.refuse = () => unavailable;
  ledger.start();
  for (let call = 0; call < 15; call += 1) void ledger.calls.close(closedCall(`req_${call}`));
  await until(() => bench.log.of("writeFailed").length >= 2);
  expect(bench.log.of("writeFailed")[0]).toEqual([unavailable]);
  expect([ledger.waiting, ledger.calls.hasRoom, ledger.calls.whyNotReady()]).toEqual([
    15,
    true,
    undefined,
  ]);
  bench.store.refuse = () => undefined;
  await until(() => bench.store.rows.size === 15);
  expect(bench.log.of("written")).toHaveLength(1);
});

test("an error after a successful insert stores nothing twice", async () => {
  await using bench = new LedgerBench();
  const ledger = bench.open();
  bench.store.forgetToSay = () => unavailable;
  void ledger.calls.close(closedCall("req_1"));
  expect(await ledger.flush().catch(String)).toContain("refuses");
  bench.store.forgetToSay = () => undefined;
  await ledger.flush();
  expect(bench.store.rows.size).toBe(1);
  expect(ledger.waiting).toBe(0);
});

test("after a kill, closed calls are stored as they were and open ones as interrupted", async () => {
  await using bench = new LedgerBench();
  const killed = bench.open();
  void killed.calls.open(openedCall("req_closed"));
  void killed.calls.close(closedCall("req_closed", { code: "odd", target: undefined }));
  void killed.calls.open(openedCall("req_silent"));
  void killed.calls.open(openedCall("req_talking", { startedAt: bench.clock.now() - 1_500 }));
  killed.calls.checkpoint("req_talking", { outputTokens: 500 });
  killed.calls.checkpoint("req_talking", { outputTokens: 1_200 });
  void killed.calls.close(closedCall("req_refused", { status: 429 }));
  const ledger = bench.open({}, bench.afterKill());
  expect([ledger.isReplaying, ledger.isBehind]).toEqual([true, true]);
  await ledger.flush();
  expect([ledger.isReplaying, ledger.isBehind]).toEqual([false, false]);
  expect(bench.log.of("replayed")).toEqual([[{ closed: 2, interrupted: 2, skippedBytes: 0 }]]);
  const { rows } = bench.store;
  expect([...rows.keys()]).toEqual(["req_closed", "req_refused", "req_silent", "req_talking"]);
  expect(rows.get("req_closed")).toEqual(
    closedCall("req_closed", { code: "odd", target: undefined }),
  );
  expect(rows.get("req_talking")).toEqual({
    ...openedCall("req_talking", { startedAt: bench.clock.now() - 1_500 }),
    target: undefined,
    outputTokens: 1_200,
    cachedInputTokens: 0,
    usageSource: "estimated",
    outcome: "interrupted",
    status: 500,
    code: "gateway_interrupted",
    attempts: 1,
    firstEventMs: undefined,
    durationMs: 1_500,
  });
  expect(rows.get("req_silent")).toMatchObject({ inputTokens: 80, outputTokens: 0 });
});

test("a replay waits for the database while new calls are accepted, then removes the files", async () => {
  await using bench = new LedgerBench();
  const killed = bench.open();
  for (let call = 0; call < 35; call += 1) void killed.calls.close(closedCall(`req_old_${call}`));
  void killed.calls.open(openedCall("req_cut"));
  const folder = bench.afterKill();
  bench.store.refuse = () => unavailable;
  const ledger = bench.open({}, folder);
  ledger.start();
  void ledger.calls.open(openedCall("req_new"));
  void ledger.calls.close(closedCall("req_new"));
  await until(() => bench.log.of("writeFailed").length >= 2);
  expect([ledger.calls.hasRoom, ledger.isReplaying]).toEqual([true, true]);
  expect(ledger.isBehind).toBe(true);
  bench.store.refuse = () => undefined;
  await until(() => !ledger.isReplaying);
  expect(ledger.isBehind).toBe(false);
  expect(bench.store.rows.size).toBe(37);
  await ledger.flush();
  expect(spoolNames(folder)).toEqual(["00000002.spool"]);
});

test("an interrupted replay starts over, and later files follow in order", async () => {
  await using bench = new LedgerBench();
  const first = bench.open();
  for (let call = 0; call < 25; call += 1) void first.calls.open(openedCall(`req_${call}`));
  for (let call = 0; call < 20; call += 1) void first.calls.close(closedCall(`req_${call}`));
  const second = bench.open({}, bench.afterKill());
  bench.store.refuse = () => (bench.store.batchSizes.length > 1 ? unavailable : undefined);
  await second.flush().catch(() => undefined);
  expect(bench.store.rows.size).toBe(10);
  void second.calls.open(openedCall("req_later"));
  const third = bench.open({}, bench.afterKill());
  bench.store.refuse = () => undefined;
  await third.flush();
  expect(bench.store.rows.size).toBe(26);
  expect(bench.log.of("replayed")).toEqual([
    [{ closed: 0, interrupted: 1, skippedBytes: 0 }],
    [{ closed: 20, interrupted: 5, skippedBytes: 0 }],
  ]);
});

test("the readable part of a damaged file is replayed, and the file is kept", async () => {
  await using bench = new LedgerBench();
  const killed = bench.open();
  for (let call = 0; call < 3; call += 1) void killed.calls.close(closedCall(`req_${call}`));
  const folder = bench.afterKill();
  const [path = ""] = spoolPaths(folder);
  const bytes = readFileSync(path);
  const middle = Math.floor(bytes.length / 2);
  bytes[middle] = ~(bytes[middle] ?? 0);
  writeFileSync(path, bytes);
  const ledger = bench.open({}, folder);
  await ledger.flush();
  expect([...bench.store.rows.keys()]).toEqual(["req_0", "req_2"]);
  const skipped = { closed: 2, interrupted: 0, skippedBytes: bytes.length / 3 };
  expect(bench.log.of("replayed")).toEqual([[skipped]]);
  expect(readFileSync(path.replace(/spool$/, "damaged")).equals(bytes)).toBe(true);
  expect(spoolNames(folder)).toEqual(["00000001.damaged", "00000001.spool"]);
});

test("a row that the database refuses becomes a dead letter and holds up no other", async () => {
  await using bench = new LedgerBench();
  const folder = bench.newFolder();
  const ledger = bench.open({}, folder);
  const refusal = new RefusedRows("check failed");
  bench.store.refuse = (rows) => (rows.some(({ id }) => id === "req_4") ? refusal : undefined);
  for (let call = 0; call < 12; call += 1) void ledger.calls.close(closedCall(`req_${call}`));
  await ledger.flush();
  expect(bench.store.rows.size).toBe(11);
  expect(bench.log.of("deadLettered")).toEqual([["req_4", refusal]]);
  const letters = readFileSync(join(folder, "dead-letter.ndjson"), "utf8");
  expect(JSON.parse(letters)).toMatchObject({
    reason: "RefusedRows: check failed",
    record: { id: "req_4", outputTokens: 7 },
  });
  expect([ledger.waiting, ledger.calls.spoolBytes]).toEqual([0, 0]);
});

test("a row that keeps failing for an unknown reason becomes a dead letter, not earlier", async () => {
  await using bench = new LedgerBench();
  const ledger = bench.open();
  bench.store.refuse = (rows) =>
    rows.some(({ id }) => id === "req_4") ? new TypeError("odd") : undefined;
  for (let call = 0; call < 6; call += 1) void ledger.calls.close(closedCall(`req_${call}`));
  for (let tries = 0; tries < 4; tries += 1) await ledger.flush().catch(() => undefined);
  expect(bench.log.of("deadLettered")).toEqual([]);
  expect(ledger.waiting).toBe(6);
  for (let tries = 0; tries < 4; tries += 1) await ledger.flush().catch(() => undefined);
  expect(bench.log.of("deadLettered")).toMatchObject([["req_4", { message: "odd" }]]);
  expect([ledger.waiting, bench.store.rows.size]).toEqual([0, 5]);
});

test("an unknown failure that ends while rows are tried one by one makes no dead letter", async () => {
  await using bench = new LedgerBench();
  const ledger = bench.open();
  let fails = Infinity;
  bench.store.refuse = () => ((fails -= 1) >= 0 ? new TypeError("odd") : undefined);
  for (let call = 0; call < 6; call += 1) void ledger.calls.close(closedCall(`req_${call}`));
  for (let tries = 0; tries < 5; tries += 1) await ledger.flush().catch(() => undefined);
  // The next pass tries single rows.
  fails = 5;
  for (let tries = 0; tries < 2; tries += 1) await ledger.flush().catch(() => undefined);
  expect(bench.log.of("deadLettered")).toEqual([]);
  expect([ledger.waiting, bench.store.rows.size]).toEqual([0, 6]);
});

test("a row whose dead letter cannot be written stays in the spool", async () => {
  await using bench = new LedgerBench();
  const folder = bench.newFolder();
  mkdirSync(join(folder, "dead-letter.ndjson"));
  const ledger = bench.open({}, folder);
  bench.store.refuse = (rows) =>
    rows.some(({ id }) => id === "req_4") ? new RefusedRows("check failed") : undefined;
  for (let call = 0; call < 6; call += 1) void ledger.calls.close(closedCall(`req_${call}`));
  expect(await ledger.flush().catch((error: unknown) => error)).toBeInstanceOf(Error);
  expect(ledger.waiting).toBe(6);
  bench.store.refuse = () => undefined;
  await ledger.flush();
  expect(bench.store.rows.size).toBe(6);
});

test("a long call does not keep the files of later calls", async () => {
  await using bench = new LedgerBench();
  const folder = bench.newFolder();
  const ledger = bench.open({ segmentBytes: 4_000 }, folder);
  void ledger.calls.open(openedCall("req_long"));
  ledger.calls.checkpoint("req_long", { outputTokens: 1_000 });
  for (let call = 0; call < 200; call += 1) {
    void ledger.calls.open(openedCall(`req_${call}`));
    void ledger.calls.close(closedCall(`req_${call}`));
    if (call % 20 === 0) await ledger.flush();
    bench.clock.advance(1_000);
  }
  await ledger.flush();
  await ledger.flush();
  expect(spoolNames(folder).length).toBeLessThanOrEqual(2);
  const next = bench.open({}, bench.afterKill());
  await next.flush();
  expect(bench.store.rows.get("req_long")).toMatchObject({
    outcome: "interrupted",
    outputTokens: 1_000,
  });
  expect(bench.store.rows.size).toBe(201);
});

test("a nearly full spool warns once, a full one refuses calls, and a flushed one has room", async () => {
  await using bench = new LedgerBench();
  const ledger = bench.open({ segmentBytes: 16_384, spoolLimitBytes: 65_536 });
  bench.store.refuse = () => unavailable;
  let calls = 0;
  for (; hasRoom(ledger); calls += 1) void ledger.calls.close(closedCall(`req_${calls}`));
  expect(ledger.calls.whyNotReady()).toBe("usage cannot be recorded: the spool is full");
  expect(ledger.calls.spoolBytes).toBeGreaterThanOrEqual(65_536);
  void ledger.calls.close(closedCall("req_beyond"));
  expect(bench.log.of("nearlyFull")).toHaveLength(1);
  const [bytes, limit] = bench.log.of("nearlyFull")[0] ?? [];
  expect(limit).toBe(65_536);
  expect(Number(bytes)).toBeLessThan(65_536 * 0.82);
  bench.store.refuse = () => undefined;
  await ledger.flush();
  await ledger.flush();
  expect([hasRoom(ledger), ledger.calls.whyNotReady()]).toEqual([true, undefined]);
  expect(bench.store.rows.size).toBe(calls + 1);
  expect(bench.log.of("hasRoomAgain")).toHaveLength(1);
  bench.store.refuse = () => unavailable;
  for (; hasRoom(ledger); calls += 1) void ledger.calls.close(closedCall(`req_later_${calls}`));
  expect(bench.log.of("nearlyFull")).toHaveLength(2);
});

test("a shutdown with the database unavailable leaves the rows to the next start", async () => {
  await using bench = new LedgerBench();
  const folder = bench.newFolder();
  const ledger = bench.open({ sync: "group" }, folder);
  bench.store.refuse = () => unavailable;
  void ledger.calls.open(openedCall("req_open"));
  void ledger.calls.close(closedCall("req_closed"));
  await ledger.shutDown();
  expect(bench.log.of("lost")).toEqual([]);
  expect(await ledger.calls.open(openedCall("req_late"))).toMatchObject({
    message: "the ledger is closed",
  });
  await ledger.calls.close(closedCall("req_open"));
  bench.store.refuse = () => undefined;
  const next = bench.open({}, folder);
  await next.flush();
  expect([...bench.store.rows.values()].map(({ id, outcome }) => [id, outcome])).toEqual([
    ["req_closed", "completed"],
    ["req_open", "interrupted"],
  ]);
});

test("a shutdown after all rows are stored leaves no file", async () => {
  await using bench = new LedgerBench();
  const folder = bench.newFolder();
  const ledger = bench.open({ sync: "group" }, folder);
  ledger.start();
  void ledger.calls.open(openedCall("req_1"));
  void ledger.calls.close(closedCall("req_1"));
  await ledger.shutDown();
  expect(bench.store.rows.size).toBe(1);
  expect(spoolNames(folder)).toEqual([]);
});

test("a ledger that was not started changes nothing when it is shut down", async () => {
  await using bench = new LedgerBench();
  const folder = bench.newFolder();
  writeFileSync(join(folder, "00000001.spool"), "calls that were not stored");
  await bench.open({}, folder).shutDown();
  expect(readdirSync(folder)).toEqual(["00000001.spool"]);
});
