import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import {
  closedCall,
  FallibleStore,
  LedgerLog,
  openedCall,
  randomOf,
  TestFolder,
} from "../../../test/support/ledger-fixtures.ts";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import { StorageUnavailable } from "../../store/errors.ts";
import type { UsageStore } from "../../store/store.ts";
import { systemFiles, type SpoolFiles } from "../spool/spool-files.ts";
import { SpoolWriter } from "../spool/spool-writer.ts";
import { Ingest } from "./ingest.ts";

type Random = () => number;

/** A process that stops having any effect at a chosen operation. */
class Life {
  readonly #random: Random;
  #operations = Infinity;

  constructor(random: Random) {
    this.#random = random;
  }

  get isOver(): boolean {
    return this.#operations <= 0;
  }

  endAfter(operations: number): void {
    this.#operations = Math.min(this.#operations, operations);
  }

  /** The last operation may take effect without being answered. */
  do<Result>(run: () => Result): Result {
    this.#operations -= 1;
    if (this.#operations < 0) throw new Error("the process has ended");
    const result = this.#operations > 0 || this.#random() < 0.5 ? run() : undefined;
    if (result === undefined && this.#operations === 0) throw new Error("the process ends");
    return result as Result;
  }

  storeOf(store: FallibleStore): UsageStore {
    const insert = async (rows: readonly UsageRecord[]): Promise<void> => {
      await this.do(() => store.insert(rows));
      if (this.isOver) throw new StorageUnavailable("nobody is there to hear it");
    };
    return {
      insert,
      prune: () => store.prune(),
      erase: () => store.erase(),
      eraseEndUsers: () => store.eraseEndUsers(),
    };
  }

  files(hasTrouble: () => boolean): SpoolFiles {
    const check = (): void => {
      if (hasTrouble()) throw new Error("EIO");
    };
    return {
      ...systemFiles,
      create: (path) => this.do(() => (check(), systemFiles.create(path))),
      append: (file, bytes) => {
        const part = this.#random() < 0.5 ? bytes : bytes.subarray(0, bytes.length / 2);
        if (this.#operations === 1 && part.length > 0) systemFiles.append(file, part);
        if (this.#operations === 1) this.#operations = 0;
        return this.do(() => (check(), systemFiles.append(file, bytes)));
      },
      sync: (file) => this.do(() => (check(), systemFiles.sync(file))),
      syncPath: (path) => this.do(() => systemFiles.syncPath(path)),
      remove: (path) => this.do(() => (systemFiles.remove(path), true)),
    };
  }
}

interface WriterLife {
  readonly life: Life;
  readonly writer: SpoolWriter;
  readonly open: string[];
  /** Writes what the current turn has recorded. */
  endTurn: () => void;
  hasTrouble: boolean;
}

/** Writers and an ingest on the same folder, which crash at any point and start again. */
class History implements AsyncDisposable {
  readonly store = new FallibleStore();
  readonly root = new TestFolder();
  readonly log = new LedgerLog();
  readonly expected = new Map<string, UsageRecord | "interrupted">();
  /** Calls that ended exactly when a crash happened, or that waited for the disk. */
  readonly uncertain = new Set<string>();
  crashes = 0;
  readonly #random: Random;
  readonly #clock = new ManualClock();
  #calls = 0;
  #writers: WriterLife[] = [];
  #ingestLife: Life;
  #ingest: Ingest;

  constructor(seed: number) {
    this.#random = randomOf(seed);
    this.store.refuse = () => (this.#random() < 0.2 ? new StorageUnavailable("locked") : undefined);
    this.#ingestLife = new Life(this.#random);
    this.#ingest = this.#startIngest();
    for (let writer = 0; writer < 3; writer += 1) this.#writers.push(this.#startWriter());
  }

  async step(): Promise<void> {
    const draw = this.#random();
    const one = this.#writers[Math.floor(this.#random() * this.#writers.length)];
    if (one === undefined) return;
    one.hasTrouble &&= this.#random() < 0.9;
    if (this.#random() < 0.4) one.endTurn();
    await Promise.resolve();
    if (draw < 0.4) void this.#open(one);
    else if (draw < 0.45) one.writer.checkpoint(this.#anyOpen(one), { outputTokens: 1_000 });
    else if (draw < 0.75) void this.#close(one);
    else if (draw < 0.83) await one.writer.maintain();
    else if (draw < 0.93) await this.#ingest.flush().catch(() => undefined);
    else if (draw < 0.95) this.#clock.advance(6_000);
    else if (draw < 0.96) one.hasTrouble = true;
    else if (draw < 0.98) one.life.endAfter(Math.floor(this.#random() * 8));
    else this.#ingestLife.endAfter(Math.floor(this.#random() * 8));
    await this.#startAgain();
  }

  /** Ends all writers and ingests what they left. */
  async finish(): Promise<void> {
    this.store.refuse = () => undefined;
    for (const each of this.#writers) each.hasTrouble = false;
    for (const { life, writer } of this.#writers) {
      if (this.#random() < 0.5) life.endAfter(0);
      await writer.shutDown();
    }
    this.#ingestLife.endAfter(0);
    await this.#startAgain(false);
    await this.#ingest.flush();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { writer } of this.#writers) await writer.shutDown();
    await this.#ingest.stop();
    this.root[Symbol.dispose]();
  }

  async #open({ life, writer, open }: WriterLife): Promise<void> {
    const id = `req_${this.#calls}`;
    this.#calls += 1;
    const failure = await writer.open(openedCall(id));
    if (failure !== undefined) {
      // A call that was not opened does not run. After a crash, its record may exist nevertheless.
      if (life.isOver) this.expected.set(id, "interrupted");
      if (life.isOver) this.uncertain.add(id);
      return;
    }
    open.push(id);
    this.expected.set(id, "interrupted");
  }

  async #close({ life, writer, open }: WriterLife): Promise<void> {
    const [id] = open.splice(Math.floor(this.#random() * open.length), 1);
    if (id === undefined) return;
    const record = closedCall(id, { durationMs: this.#calls });
    const failure = await writer.close(record);
    this.expected.set(id, record);
    if (failure !== undefined || life.isOver || !writer.hasRoom) this.uncertain.add(id);
  }

  #anyOpen({ open }: WriterLife): string {
    return open[Math.floor(this.#random() * open.length)] ?? "none";
  }

  async #startAgain(hasWriters = true): Promise<void> {
    if (this.#ingestLife.isOver) {
      this.crashes += 1;
      await this.#ingest.stop();
      this.#ingest = this.#startIngest();
    }
    const ended = this.#writers.filter(({ life }) => life.isOver);
    for (const { writer } of ended) await writer.shutDown();
    if (!hasWriters) return;
    this.crashes += ended.length;
    const running = this.#writers.filter((each) => !ended.includes(each));
    this.#writers = [...running, ...ended.map(() => this.#startWriter())];
  }

  #startIngest(): Ingest {
    this.#ingestLife = new Life(this.#random);
    const batchRows = 1 + Math.floor(this.#random() * 20);
    return new Ingest({
      root: this.root.path,
      store: this.#ingestLife.storeOf(this.store),
      settings: { batchRows, flushIntervalMs: 1, sync: this.#anySync() },
      clock: this.#clock,
      on: this.log,
      files: this.#ingestLife.files(() => false),
    });
  }

  #startWriter(): WriterLife {
    const life = new Life(this.#random);
    const state = { hasTrouble: false, endTurn: () => undefined as void };
    const writer = new SpoolWriter({
      root: this.root.path,
      name: `1-${this.#clock.now()}-7`,
      settings: {
        batchRows: 5,
        sync: this.#anySync(),
        spoolLimitBytes: 1e9,
        segmentBytes: 500 + Math.floor(this.#random() * 6_000),
      },
      clock: this.#clock,
      on: new LedgerLog(),
      direct: life.storeOf(this.store),
      atTurnEnd: (write) => void (state.endTurn = write),
      files: life.files(() => state.hasTrouble && this.#random() < 0.5),
    });
    return Object.assign(state, { life, writer, open: [] });
  }

  #anySync(): "none" | "group" {
    return this.#random() < 0.5 ? "none" : "group";
  }
}

for (let seed = 1; seed <= 30; seed += 1) {
  test(`crashes of writers and ingest lose no row and double none (seed ${seed})`, async () => {
    await using history = new History(seed);
    for (let steps = 0; steps < 600; steps += 1) await history.step();
    await history.finish();
    const { store, expected, uncertain } = history;
    expect(history.crashes).toBeGreaterThan(10);
    expect(expected.size - uncertain.size).toBeGreaterThan(100);
    const isKnown = (id: string): boolean => !uncertain.has(id);
    expect([...store.rows.keys()].filter(isKnown).toSorted()).toEqual(
      [...expected.keys()].filter(isKnown).toSorted(),
    );
    for (const [id, record] of store.rows) {
      const wanted = expected.get(id);
      if (uncertain.has(id) && record.outcome === "interrupted") continue;
      if (wanted === "interrupted") expect(record).toMatchObject({ id, outcome: "interrupted" });
      else expect(record).toEqual(wanted ?? closedCall("none expected"));
    }
    expect([history.log.of("fileSkipped"), history.log.of("damaged")]).toEqual([[], []]);
    expect(readdirSync(history.root.path)).toEqual([]);
  });
}
