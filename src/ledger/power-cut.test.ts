import { afterEach, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import {
  closedCall,
  FallibleStore,
  ledgerFlow,
  LedgerLog,
  openedCall,
  TestFolder,
} from "../../test/support/ledger-fixtures.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { StorageUnavailable } from "../store/errors.ts";
import { Ledger, type LedgerFlow } from "../../test/support/whole-ledger.ts";
import { systemFiles, type SpoolFiles } from "./spool/spool-files.ts";

/** Files of which only what was synced survives a power cut. */
class CutDisk implements SpoolFiles {
  /** Content at the last sync, by path. */
  readonly durable = new Map<string, Uint8Array>();
  /** Error of the next writes or syncs. */
  appendError: Error | undefined;
  syncError: Error | undefined;
  /** Whether syncs are held up. */
  #areSyncsHeld = false;
  readonly #paths = new Map<number, string>();
  readonly #inFolder = new Set<string>();
  readonly #spoiled = new Set<string>();

  create(path: string): number {
    const file = systemFiles.create(path);
    this.#paths.set(file, path);
    return file;
  }
  append(file: number, bytes: Uint8Array): number {
    if (this.appendError !== undefined) throw this.appendError;
    return systemFiles.append(file, bytes);
  }
  truncate(file: number, bytes: number): void {
    systemFiles.truncate(file, bytes);
  }
  holdSyncs(): void {
    this.#areSyncsHeld = true;
  }
  async sync(file: number): Promise<void> {
    if (this.#areSyncsHeld) return;
    const path = this.#paths.get(file) ?? "";
    const content = readFileSync(path);
    await systemFiles.sync(file);
    if (this.syncError !== undefined) {
      // The system drops pages it could not write and reports that only once.
      this.#spoiled.add(path);
      throw this.syncError;
    }
    if (!this.#spoiled.has(path)) this.durable.set(path, content);
  }
  async syncFolder(path: string): Promise<void> {
    const files = [...this.#paths.values()];
    await systemFiles.syncFolder(path);
    for (const file of files) this.#inFolder.add(file);
  }
  async syncPath(path: string): Promise<void> {
    const content = readFileSync(path);
    await systemFiles.syncPath(path);
    if (!this.#spoiled.has(path)) this.durable.set(path, content);
    this.#inFolder.add(path);
  }
  close(file: number): void {
    systemFiles.close(file);
  }
  remove(path: string): void {
    this.durable.delete(path);
    systemFiles.remove(path);
  }
  rename(path: string, newPath: string): void {
    systemFiles.rename(path, newPath);
  }

  /** Writes what survives the power cut into a folder. */
  cutTo(folder: string): void {
    mkdirSync(folder);
    for (const [path, content] of this.durable) {
      if (!this.#inFolder.has(path)) continue;
      keep(join(folder, basename(dirname(path))), basename(path), content);
    }
  }

  /** Content of files whose names survive the power cut. */
  get durableText(): string {
    return this.#named.map(([, bytes]) => Buffer.from(bytes).toString()).join("");
  }

  /** How many files survive it. */
  get survivors(): number {
    return this.#named.length;
  }

  get #named() {
    return [...this.durable].filter(([path]) => this.#inFolder.has(path));
  }
}

function keep(folder: string, name: string, content: Uint8Array): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), content);
}

const ledgers: Ledger[] = [];
afterEach(async () => {
  for (const ledger of ledgers.splice(0)) await ledger.shutDown();
});

function setUp(folder: TestFolder, flow: Partial<LedgerFlow> = {}) {
  const store = new FallibleStore();
  store.refuse = () => new StorageUnavailable("gone");
  const disk = new CutDisk();
  const clock = new ManualClock();
  const options = { clock, on: new LedgerLog() };
  const path = join(folder.path, "before");
  const settings = { ...ledgerFlow, sync: "group" as const, ...flow };
  const ledger = new Ledger({ folder: path, store, files: disk, settings, ...options });
  ledgers.push(ledger);
  return { disk, ledger, clock, store };
}

/** Outcomes of calls after the power cut. */
async function afterCut(folder: TestFolder, disk: CutDisk): Promise<Record<string, string>> {
  const path = join(folder.path, "after");
  disk.cutTo(path);
  const store = new FallibleStore();
  const options = { settings: ledgerFlow, clock: new ManualClock(), on: new LedgerLog() };
  const ledger = new Ledger({ folder: path, store, ...options });
  ledgers.push(ledger);
  await ledger.flush();
  return Object.fromEntries([...store.rows.values()].map(({ id, outcome }) => [id, outcome]));
}

async function until(isTrue: () => boolean): Promise<void> {
  for (let tries = 0; tries < 1_000 && !isTrue(); tries += 1) await Bun.sleep(5);
  expect(isTrue()).toBe(true);
}

function systemError(code: string): Error {
  return Object.assign(new Error(code), { code });
}

/** The database stays unavailable; the spool retries what failed. */
async function recover(ledger: Ledger): Promise<void> {
  await ledger.flush().catch(() => undefined);
}

test("a write is on disk a moment later, file name included", async () => {
  using folder = new TestFolder();
  const { disk, ledger } = setUp(folder);
  void ledger.calls.open(openedCall("req_open"));
  void ledger.calls.close(closedCall("req_closed"));
  await until(() => disk.durableText.includes("req_closed"));
  expect(await afterCut(folder, disk)).toEqual({
    req_open: "interrupted",
    req_closed: "completed",
  });
});

test("a file that is replaced is synced too", async () => {
  using folder = new TestFolder();
  const { disk, ledger } = setUp(folder, { segmentBytes: 200 });
  for (let call = 0; call < 5; call += 1) void ledger.calls.close(closedCall(`req_${call}`));
  await until(() => disk.survivors === 5);
  expect(Object.keys(await afterCut(folder, disk))).toHaveLength(5);
});

test.each(["EIO", "ENOSPC"])(
  "%s of a write does not keep other records from the disk",
  async (code) => {
    using folder = new TestFolder();
    const { disk, ledger } = setUp(folder);
    void ledger.calls.open(openedCall("req_open"));
    disk.appendError = systemError(code);
    void ledger.calls.close(closedCall("req_closed"));
    disk.appendError = undefined;
    await recover(ledger);
    await until(() => disk.durableText.includes("req_closed"));
    await until(() => disk.durableText.includes("req_open"));
    expect(await afterCut(folder, disk)).toEqual({
      req_open: "interrupted",
      req_closed: "completed",
    });
  },
);

test("a file is removed only when open calls that left it are on disk elsewhere", async () => {
  using folder = new TestFolder();
  const { disk, ledger, clock, store } = setUp(folder, { segmentBytes: 100 });
  store.refuse = () => undefined;
  void ledger.calls.open(openedCall("req_long"));
  void ledger.calls.open(openedCall("req_1"));
  await until(() => disk.survivors === 2);
  clock.advance(10_000);
  disk.holdSyncs();
  await ledger.flush();
  expect(await afterCut(folder, disk)).toMatchObject({ req_long: "interrupted" });
});

test("an old file stays until its replacement is on disk", async () => {
  using folder = new TestFolder();
  const { disk, ledger } = setUp(folder, { segmentBytes: 100 });
  void ledger.calls.open(openedCall("req_1"));
  void ledger.calls.open(openedCall("req_2"));
  await until(() => disk.survivors === 2);
  // Every call of the first file is in a later one by now.
  void ledger.calls.close(closedCall("req_1"));
  await recover(ledger);
  expect(await afterCut(folder, disk)).toEqual({ req_1: "interrupted", req_2: "interrupted" });
});
