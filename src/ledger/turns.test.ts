import { afterEach, expect, test } from "bun:test";
import { cpSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  closedCall,
  copySpools,
  FallibleStore,
  ledgerFlow,
  LedgerLog,
  openedCall,
  spoolPaths,
  TestFolder,
} from "../../test/support/ledger-fixtures.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { Ledger, type LedgerFlow } from "../../test/support/whole-ledger.ts";
import { headerBytes, sealFrame } from "./spool/frame.ts";
import { systemFiles, type SpoolFiles } from "./spool/spool-files.ts";

/** The real files, with a count of their writes, and a disk that may fill up. */
function countedFiles() {
  const disk = { writes: 0, room: Infinity };
  const append: SpoolFiles["append"] = (file, bytes) => {
    disk.writes += 1;
    if (disk.room === 0) throw Object.assign(new Error("full"), { code: "ENOSPC" });
    const written = systemFiles.append(file, bytes.subarray(0, disk.room));
    disk.room -= written;
    return written;
  };
  return Object.assign(disk, { files: { ...systemFiles, append } });
}

const started: Ledger[] = [];
afterEach(async () => {
  for (const ledger of started.splice(0)) await ledger.shutDown();
});

interface Bench {
  readonly ledger: Ledger;
  readonly disk: ReturnType<typeof countedFiles>;
  readonly store: FallibleStore;
  readonly log: LedgerLog;
}

/** A ledger that uses turns of the real event loop. */
function start(folder: string, flow: Partial<LedgerFlow> = {}): Bench {
  mkdirSync(folder, { recursive: true });
  const disk = countedFiles();
  const store = new FallibleStore();
  const log = new LedgerLog();
  const ledger = new Ledger({
    folder,
    store,
    files: disk.files,
    settings: { ...ledgerFlow, ...flow },
    clock: new ManualClock(),
    on: log,
    atTurnEnd: setImmediate,
  });
  started.push(ledger);
  return { ledger, disk, store, log };
}

/** The content of the ledger if the process died now. */
async function afterKill(folder: string): Promise<Bench & { outcomes: Record<string, string> }> {
  const copy = `${folder}-after-${started.length}`;
  mkdirSync(copy);
  copySpools(folder, copy);
  const bench = start(copy);
  await bench.ledger.flush();
  const rows = [...bench.store.rows.values()];
  return { ...bench, outcomes: Object.fromEntries(rows.map((row) => [row.id, row.outcome])) };
}

test("the records of one turn are one write, for which their calls wait together", async () => {
  using root = new TestFolder();
  const { ledger, disk } = start(join(root.path, "spool"));
  const ids = Array.from({ length: 200 }, (_, call) => `req_${call}`);
  const opening = ids.map((id) => ledger.calls.open(openedCall(id)));
  expect([new Set(opening).size, disk.writes]).toEqual([1, 0]);
  await Promise.all(opening);
  expect(disk.writes).toBe(1);
  ledger.calls.checkpoint("req_7", { outputTokens: 5 });
  const closing = ids.slice(10).map((id) => ledger.calls.close(closedCall(id)));
  await Promise.all([...closing, ledger.calls.open(openedCall("req_later"))]);
  expect(disk.writes).toBe(2);
});

test("a crash between record and write is a crash before the record", async () => {
  using root = new TestFolder();
  const folder = join(root.path, "spool");
  const { ledger } = start(folder);
  await ledger.calls.open(openedCall("req_1"));
  const told: string[] = [];
  const closing = ledger.calls.close(closedCall("req_1")).then(() => told.push("closed"));
  const opening = ledger.calls.open(openedCall("req_2")).then(() => told.push("opened"));
  await Promise.resolve();
  expect((await afterKill(folder)).outcomes).toEqual({ req_1: "interrupted" });
  await Promise.all([closing, opening]);
  expect(told).toEqual(["closed", "opened"]);
  expect((await afterKill(folder)).outcomes).toEqual({ req_1: "completed", req_2: "interrupted" });
});

test("calls that are opened and closed in one turn are whole", async () => {
  using root = new TestFolder();
  const folder = join(root.path, "spool");
  const { ledger } = start(folder);
  void ledger.calls.open(openedCall("req_1"));
  await ledger.calls.close(closedCall("req_1", { outputTokens: 99 }));
  expect(ledger.waiting).toBe(1);
  const { store, log } = await afterKill(folder);
  expect([...store.rows.values()]).toEqual([closedCall("req_1", { outputTokens: 99 })]);
  expect(log.of("replayed")).toEqual([[{ closed: 1, interrupted: 0, skippedBytes: 0 }]]);
});

test("a turn that cannot be written whole opens none of its calls", async () => {
  using root = new TestFolder();
  const folder = join(root.path, "spool");
  const { ledger, disk, log } = start(folder);
  await ledger.calls.open(openedCall("req_running"));
  disk.room = 500;
  const opening = [1, 2, 3, 4, 5, 6, 7, 8].map((id) => ledger.calls.open(openedCall(`req_${id}`)));
  const closing = ledger.calls.close(closedCall("req_running"));
  const failures = await Promise.all([...opening, closing]);
  expect(new Set(failures.map((failure) => failure?.message))).toEqual(
    new Set(["the spool cannot be written"]),
  );
  expect(log.of("spoolFailed")).toHaveLength(1);
  expect((await afterKill(folder)).outcomes).toEqual({ req_running: "interrupted" });
  disk.room = Infinity;
  await ledger.calls.maintain();
  expect((await afterKill(folder)).outcomes).toEqual({ req_running: "completed" });
});

test("a torn turn at the end of a file is not read, and is not damage", async () => {
  using root = new TestFolder();
  const folder = join(root.path, "spool");
  const { ledger } = start(folder);
  await ledger.calls.open(openedCall("req_1"));
  const [path = ""] = spoolPaths(folder);
  const before = statSync(path).size;
  void ledger.calls.close(closedCall("req_1"));
  await ledger.calls.open(openedCall("req_2"));
  const bytes = readFileSync(path);
  for (let length = before; length < bytes.length; length += 29) {
    const cut = join(root.path, `cut-${length}`);
    cpSync(folder, cut, { recursive: true, filter: (name) => !name.endsWith("lock") });
    writeFileSync(spoolPaths(cut)[0] ?? "", bytes.subarray(0, length));
    const { outcomes, log } = await afterKill(cut);
    expect(outcomes).toEqual({ req_1: "interrupted" });
    expect(log.of("replayed")).toEqual([[{ closed: 0, interrupted: 1, skippedBytes: 0 }]]);
  }
});

test("damage to one turn costs no record of another, not even the end of a call that it opened", async () => {
  using root = new TestFolder();
  const folder = join(root.path, "spool");
  const { ledger } = start(folder);
  await ledger.calls.open(openedCall("req_1"));
  const [path = ""] = spoolPaths(folder);
  const opened = statSync(path).size;
  await ledger.calls.close(closedCall("req_1"));
  const bytes = readFileSync(path);
  bytes[opened - 20] = ~(bytes[opened - 20] ?? 0);
  writeFileSync(path, bytes);
  const { store, log } = await afterKill(folder);
  expect([...store.rows.values()]).toEqual([closedCall("req_1")]);
  const skipped = { closed: 1, interrupted: 0, skippedBytes: opened };
  expect(log.of("replayed")).toEqual([[skipped]]);
});

test("each file can be read without those before it", async () => {
  using root = new TestFolder();
  const folder = join(root.path, "spool");
  const { ledger } = start(folder, { segmentBytes: 100 });
  await ledger.calls.open(openedCall("req_1"));
  await ledger.calls.open(openedCall("req_2"));
  await ledger.calls.close(closedCall("req_1"));
  const paths = spoolPaths(folder);
  expect(paths).toHaveLength(3);
  writeFileSync(paths[0] ?? "", "lost");
  writeFileSync(paths[1] ?? "", "");
  const { store } = await afterKill(folder);
  expect([...store.rows.values()]).toEqual([closedCall("req_1")]);
});

test("a very long turn is written in parts that readers take", async () => {
  using root = new TestFolder();
  const folder = join(root.path, "spool");
  const { ledger, disk } = start(folder);
  const routing = { candidates: [{ target: "x".repeat(150), model: "m", why: "" }], attempts: [] };
  const records = Array.from({ length: 2_000 }, (_, id) => closedCall(`req_${id}`, { routing }));
  await Promise.all(records.map((record) => ledger.calls.close(record)));
  expect(disk.writes).toBeGreaterThan(1);
  expect(disk.writes).toBeLessThan(10);
  const { store } = await afterKill(folder);
  expect([...store.rows.values()]).toEqual(records);
});

test("a line that is no record costs itself alone, and its file is kept", async () => {
  using root = new TestFolder();
  const folder = join(root.path, "spool");
  const { ledger } = start(folder);
  await ledger.calls.close(closedCall("req_1"));
  const lines = [{ close: closedCall("req_2") }, { later: 1 }, { close: closedCall("req_3") }];
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  const frame = sealFrame(Buffer.concat([Buffer.alloc(headerBytes), Buffer.from(text)]));
  const [path = ""] = spoolPaths(folder);
  writeFileSync(path, Buffer.concat([readFileSync(path), frame]));
  const { store, log } = await afterKill(folder);
  expect([...store.rows.keys()]).toEqual(["req_1", "req_2", "req_3"]);
  const skippedBytes = JSON.stringify(lines[1]).length;
  expect(log.of("replayed")).toEqual([[{ closed: 3, interrupted: 0, skippedBytes }]]);
});
