import { afterEach, expect, test } from "bun:test";
import { renameSync, symlinkSync, unlinkSync } from "node:fs";
import { basename } from "node:path";
import {
  closedCall,
  FallibleStore,
  ledgerFlow,
  LedgerLog,
  openedCall,
  spoolPaths,
  TestFolder,
} from "../../test/support/ledger-fixtures.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { StorageUnavailable } from "../store/errors.ts";
import { Ledger, type LedgerFlow } from "../../test/support/whole-ledger.ts";

const ledgers: Ledger[] = [];
afterEach(async () => {
  for (const ledger of ledgers.splice(0)) await ledger.shutDown();
});

function setUp(folder: TestFolder, flow: Partial<LedgerFlow> = {}) {
  const store = new FallibleStore();
  const log = new LedgerLog();
  const settings = { ...ledgerFlow, ...flow };
  const options = { folder: folder.path, store, settings, clock: new ManualClock(), on: log };
  const ledger = new Ledger(options);
  ledgers.push(ledger);
  return { store, log, ledger };
}

const away = new StorageUnavailable("gone");

/** Leaves rows of ended calls in several files, and one open call. */
async function leaveRows(folder: TestFolder, rows: number): Promise<void> {
  const { store, ledger } = setUp(folder, { segmentBytes: 2_000 });
  store.refuse = () => away;
  void ledger.calls.open(openedCall("req_open"));
  for (let row = 0; row < rows; row += 1) void ledger.calls.close(closedCall(`req_${row}`));
  await ledger.shutDown();
}

function filesOf(folder: TestFolder, ending: string): readonly string[] {
  return spoolPaths(folder.path).filter((path) => path.endsWith(ending));
}

/** Makes the file fail to open, without being missing or damaged, until undone. */
function keepFromOpening(path: string): () => void {
  renameSync(path, `${path}-kept`);
  symlinkSync(basename(path), path);
  return () => {
    unlinkSync(path);
    renameSync(`${path}-kept`, path);
  };
}

test("a file that fails to open is not damage: its rows are stored once it opens", async () => {
  using folder = new TestFolder();
  await leaveRows(folder, 20);
  const files = filesOf(folder, ".spool");
  expect(files.length).toBeGreaterThan(2);
  const { store, log, ledger } = setUp(folder);
  const open = keepFromOpening(files[1] ?? "");
  for (let tries = 0; tries < 3; tries += 1) {
    expect(ledger.flush()).rejects.toThrow();
    await ledger.flush().catch(() => undefined);
  }
  expect([store.rows.size > 0, store.rows.size < 20, ledger.isReplaying]).toEqual([
    true,
    true,
    true,
  ]);
  open();
  await ledger.flush();
  await ledger.flush();
  expect(store.rows.size).toBe(21);
  expect(store.rows.get("req_open")?.outcome).toBe("interrupted");
  expect(ledger.isReplaying).toBe(false);
  expect(log.of("replayed")).toEqual([[{ closed: 20, interrupted: 1, skippedBytes: 0 }]]);
  expect(filesOf(folder, ".damaged")).toEqual([]);
});

test("a file that never opens is not waited for", async () => {
  using folder = new TestFolder();
  await leaveRows(folder, 3);
  const [left = ""] = filesOf(folder, ".spool");
  const { ledger } = setUp(folder);
  const open = keepFromOpening(left);
  for (let tries = 0; tries < 29; tries += 1) await ledger.flush().catch(() => undefined);
  expect(ledger.isBehind).toBe(true);
  await ledger.flush().catch(() => undefined);
  expect(ledger.isBehind).toBe(false);
  open();
  await ledger.flush();
  await ledger.flush();
  expect([ledger.isBehind, ledger.isReplaying]).toEqual([false, false]);
});

test("while a file fails to open, new rows are stored without a backoff", async () => {
  using folder = new TestFolder();
  await leaveRows(folder, 3);
  const [left = ""] = filesOf(folder, ".spool");
  const { store, ledger } = setUp(folder, { flushIntervalMs: 1_000, batchRows: 10 });
  const open = keepFromOpening(left);
  await ledger.flush().catch(() => undefined);
  ledger.start();
  // With back-off after each failure, this would take minutes.
  for (let row = 0; row < 900; row += 1) void ledger.calls.close(closedCall(`req_new_${row}`));
  for (let tries = 0; tries < 2_000 && ledger.waiting > 10; tries += 1) await Bun.sleep(5);
  expect(ledger.waiting).toBeLessThanOrEqual(10);
  open();
  await ledger.flush();
  expect(store.rows.size).toBe(904);
});

test("rows in a file of this process that fails to open are stored once it opens", async () => {
  using folder = new TestFolder();
  const { store, log, ledger } = setUp(folder, { segmentBytes: 4_000 });
  store.refuse = () => away;
  for (let row = 0; row < 100; row += 1) void ledger.calls.close(closedCall(`req_${row}`));
  await ledger.flush().catch(() => undefined);
  store.refuse = () => undefined;
  const open = keepFromOpening(filesOf(folder, ".spool")[3] ?? "");
  expect(ledger.flush()).rejects.toThrow("the spool cannot be read");
  await ledger.flush().catch(() => undefined);
  expect(store.rows.size).toBeLessThan(100);
  open();
  await ledger.flush();
  expect(store.rows.size).toBe(100);
  expect(log.of("damaged")).toEqual([]);
});
