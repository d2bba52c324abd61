import { afterEach, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import {
  closedCall,
  FallibleStore,
  ledgerFlow,
  LedgerLog,
  openedCall,
  spoolNames,
  TestFolder,
} from "../../test/support/ledger-fixtures.ts";
import { canMount, mountDisk } from "../../test/support/ledger-truth-disk.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { testWhere } from "../../test/support/requirement.ts";
import { RefusedRows, StorageUnavailable } from "../store/errors.ts";
import { Ledger, type LedgerFlow } from "../../test/support/whole-ledger.ts";
import { systemFiles, type SpoolFiles } from "./spool/spool-files.ts";

/** The real file system, of which a test can break one operation. */
class BreakableFiles implements SpoolFiles {
  broken = new Set<keyof SpoolFiles>();
  code = "EIO";
  /** Bytes that a failing `append` still writes. */
  bytesBefore = 0;

  create(path: string): number {
    this.#check("create");
    return systemFiles.create(path);
  }
  append(file: number, bytes: Uint8Array): number {
    const room = this.broken.has("append") ? this.bytesBefore : bytes.length;
    if (room === 0) this.#check("append");
    if (this.broken.has("append")) this.bytesBefore = 0;
    return systemFiles.append(file, bytes.subarray(0, room));
  }
  truncate(file: number, bytes: number): void {
    this.#check("truncate");
    systemFiles.truncate(file, bytes);
  }
  async sync(file: number): Promise<void> {
    this.#check("sync");
    await systemFiles.sync(file);
  }
  async syncFolder(path: string): Promise<void> {
    this.#check("syncFolder");
    await systemFiles.syncFolder(path);
  }
  close(file: number): void {
    systemFiles.close(file);
  }
  async syncPath(path: string): Promise<void> {
    this.#check("syncPath");
    await systemFiles.syncPath(path);
  }
  remove(path: string): void {
    this.#check("remove");
    systemFiles.remove(path);
  }
  rename(path: string, newPath: string): void {
    this.#check("rename");
    systemFiles.rename(path, newPath);
  }

  #check(what: keyof SpoolFiles): void {
    if (!this.broken.has(what)) return;
    throw Object.assign(new Error(`${this.code}: ${what} failed`), { code: this.code });
  }
}

const ledgers: Ledger[] = [];
afterEach(async () => {
  for (const ledger of ledgers.splice(0)) await ledger.shutDown();
});

function setUp(folder: TestFolder, flow: Partial<LedgerFlow> = {}) {
  const store = new FallibleStore();
  const files = new BreakableFiles();
  const log = new LedgerLog();
  const settings = { ...ledgerFlow, ...flow };
  const clock = new ManualClock();
  const ledger = new Ledger({ folder: folder.path, store, files, settings, clock, on: log });
  ledgers.push(ledger);
  return { store, files, log, ledger };
}

const away = new StorageUnavailable("gone");

/** Rows that the next start finds. The ledger before it must have shut down. */
async function replay(folder: TestFolder): Promise<FallibleStore> {
  const { store, ledger } = setUp(folder);
  await ledger.flush();
  await ledger.shutDown();
  return store;
}

function outcomes(store: FallibleStore): Record<string, string> {
  return Object.fromEntries([...store.rows.values()].map(({ id, outcome }) => [id, outcome]));
}

test.each([
  ["ENOSPC", 0],
  ["ENOSPC", 30],
  ["EIO", 0],
  ["EIO", 200],
])("%s after %d bytes refuses new calls and loses no running one", async (code, bytesBefore) => {
  using folder = new TestFolder();
  const { files, store, log, ledger } = setUp(folder);
  store.refuse = () => away;
  for (const id of ["req_1", "req_2", "req_3"]) void ledger.calls.open(openedCall(id));
  void ledger.calls.close(closedCall("req_1"));
  Object.assign(files, { code, bytesBefore, broken: new Set(["append"]) });
  void ledger.calls.close(closedCall("req_2"));
  const failure = await ledger.calls.open(openedCall("req_4"));
  expect(failure).toMatchObject({ message: "the spool cannot be written", cause: { code } });
  ledger.calls.checkpoint("req_3", { outputTokens: 1_000 });
  expect([ledger.calls.hasRoom, ledger.calls.whyNotReady()]).toEqual([
    false,
    "usage cannot be recorded: the spool cannot be written",
  ]);
  await ledger.flush().catch(() => undefined);
  expect(log.of("spoolFailed")).toHaveLength(1);
  files.broken.clear();
  await ledger.flush().catch(() => undefined);
  expect(log.of("spoolRecovered")).toHaveLength(1);
  void ledger.calls.open(openedCall("req_5"));
  expect([ledger.calls.hasRoom, ledger.waiting]).toEqual([true, 2]);
  await ledger.shutDown();
  expect(outcomes(await replay(folder))).toEqual({
    req_1: "completed",
    req_2: "completed",
    req_3: "interrupted",
    req_5: "interrupted",
  });
});

test("a partial write costs no other record", async () => {
  using folder = new TestFolder();
  const { files, store, ledger } = setUp(folder);
  store.refuse = () => away;
  void ledger.calls.open(openedCall("req_1"));
  Object.assign(files, { bytesBefore: 40, broken: new Set(["append"]) });
  void ledger.calls.close(closedCall("req_1"));
  files.broken.clear();
  await ledger.flush().catch(() => undefined);
  void ledger.calls.close(closedCall("req_2"));
  await ledger.shutDown();
  expect(outcomes(await replay(folder))).toEqual({ req_1: "completed", req_2: "completed" });
});

test("retries on a failing disk leave no additional files", async () => {
  using folder = new TestFolder();
  const { files, store, ledger } = setUp(folder);
  store.refuse = () => away;
  Object.assign(files, { code: "ENOSPC", broken: new Set(["append"]) });
  void ledger.calls.close(closedCall("req_1"));
  for (let tries = 0; tries < 20; tries += 1) await ledger.flush().catch(() => undefined);
  expect(spoolNames(folder.path)).toHaveLength(1);
  files.broken.clear();
  await ledger.flush().catch(() => undefined);
  await ledger.shutDown();
  expect(outcomes(await replay(folder))).toEqual({ req_1: "completed" });
});

test("ended calls reach the database while the spool cannot be written", async () => {
  using folder = new TestFolder();
  const { files, store, ledger } = setUp(folder);
  void ledger.calls.open(openedCall("req_1"));
  files.broken.add("append").add("create");
  void ledger.calls.close(closedCall("req_1"));
  await ledger.flush();
  expect(outcomes(store)).toEqual({ req_1: "completed" });
  expect(ledger.calls.hasRoom).toBe(false);
});

test("a call that the database refuses holds up no other while the spool cannot be written", async () => {
  using folder = new TestFolder();
  const { files, store, ledger } = setUp(folder);
  store.refuse = (rows) =>
    rows.some(({ id }) => id === "req_1") ? new RefusedRows("check failed") : undefined;
  files.broken.add("append").add("create");
  for (const id of ["req_1", "req_2", "req_3"]) void ledger.calls.close(closedCall(id));
  await ledger.flush();
  expect([...store.rows.keys()]).toEqual(["req_2", "req_3"]);
});

test("rows that are lost at shutdown are reported", async () => {
  using folder = new TestFolder();
  const { files, store, log, ledger } = setUp(folder);
  store.refuse = () => away;
  files.broken.add("append");
  void ledger.calls.close(closedCall("req_1"));
  void ledger.calls.close(closedCall("req_2"));
  await ledger.shutDown();
  expect(log.of("lost")).toMatchObject([[2, { code: "EIO" }]]);
});

test("calls are refused while no file can be created, and the folder is retried", async () => {
  using folder = new TestFolder();
  const { files, ledger } = setUp(folder, { segmentBytes: 100 });
  void ledger.calls.close(closedCall("req_1"));
  files.code = "EROFS";
  files.broken.add("create");
  const failure = await ledger.calls.open(openedCall("req_2"));
  expect(failure).toMatchObject({ message: "the spool cannot be written" });
  expect(ledger.calls.hasRoom).toBe(false);
  files.broken.clear();
  await ledger.flush();
  expect(ledger.calls.hasRoom).toBe(true);
});

test("files that cannot be removed are removed at the next start", async () => {
  using folder = new TestFolder();
  const { files, store, ledger } = setUp(folder, { segmentBytes: 500 });
  files.broken.add("remove");
  for (let call = 0; call < 9; call += 1) void ledger.calls.close(closedCall(`req_${call}`));
  await ledger.flush();
  await ledger.shutDown();
  expect(store.rows.size).toBe(9);
  const again = await replay(folder);
  expect(again.rows.size).toBe(9);
  expect(readdirSync(folder.path)).toEqual([]);
});

test("a folder that is a file is refused by name", () => {
  using folder = new TestFolder();
  const path = join(folder.path, "spool");
  systemFiles.close(systemFiles.create(path));
  const store = new FallibleStore();
  const options = { store, settings: ledgerFlow, clock: new ManualClock(), on: new LedgerLog() };
  expect(() => new Ledger({ folder: path, ...options })).toThrow("spool");
});

testWhere(canMount, "small disks cannot be mounted").each([
  [65_536, 5],
  [8_000_000, 0],
])(
  "a real disk that fills up with files of %d bytes loses nothing, with %d calls that go on",
  async (segmentBytes, goingOn) => {
    using disk = mountDisk("1m");
    const store = new FallibleStore();
    const log = new LedgerLog();
    const settings = { ...ledgerFlow, segmentBytes };
    const clock = new ManualClock();
    const options = { folder: join(disk.path, "spool"), store, settings, clock };
    const ledger = new Ledger({ ...options, on: log });
    store.refuse = () => away;
    const running: string[] = [];
    for (let call = 0; ledger.calls.hasRoom && call < 10_000; call += 1) {
      if ((await ledger.calls.open(openedCall(`req_${call}`))) !== undefined) break;
      running.push(`req_${call}`);
      if (call % 3 > 0) void ledger.calls.close(closedCall(running.shift() ?? ""));
    }
    expect(log.of("spoolFailed")).toMatchObject([[{ code: "ENOSPC" }]]);
    const cut = running.splice(0, goingOn);
    for (const id of running) void ledger.calls.close(closedCall(id));
    expect(ledger.calls.hasRoom).toBe(false);
    // The database is available again, so files are removed and there is room.
    store.refuse = () => undefined;
    await ledger.flush();
    await ledger.flush();
    await ledger.flush();
    expect(log.of("spoolRecovered")).toHaveLength(1);
    expect(ledger.calls.hasRoom).toBe(true);
    await ledger.shutDown();
    const next = new Ledger({ ...options, on: new LedgerLog() });
    await next.flush();
    await next.shutDown();
    const interrupted = [...store.rows.values()].filter(({ outcome }) => outcome === "interrupted");
    expect(interrupted.map(({ id }) => id).toSorted()).toEqual(cut.toSorted());
    expect(store.rows.size).toBeGreaterThan(1_000);
  },
);
