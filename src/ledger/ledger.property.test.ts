import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  closedCall,
  copySpools,
  FallibleStore,
  LedgerLog,
  openedCall,
  randomOf,
  TestFolder,
} from "../../test/support/ledger-fixtures.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import type { UsageRecord } from "../domain/usage/usage.ts";
import { RefusedRows, StorageUnavailable } from "../store/errors.ts";
import { Ledger } from "../../test/support/whole-ledger.ts";
import { systemFiles, type SpoolFiles } from "./spool/spool-files.ts";

/**
 * A gateway that is killed repeatedly while database and disk fail at random, and the expected
 * content of its ledger.
 */
class Trial implements AsyncDisposable {
  readonly store = new FallibleStore();
  /** Expected outcome of each call. */
  readonly expected = new Map<string, UsageRecord | "interrupted">();
  /** Calls that ended while the disk failed, before a kill: their outcome is unknown. */
  readonly uncertain = new Set<string>();
  kills = 0;
  readonly #root = new TestFolder();
  readonly #random: () => number;
  readonly #clock = new ManualClock();
  readonly #ending: Promise<void>[] = [];
  #calls = 0;
  #open: string[] = [];
  #folder = "";
  #life = { isOver: false };
  #ledger: Ledger;
  /** Writes what the current turn has recorded. */
  #endTurn = (): void => undefined;
  #isDiskBroken = false;
  #isDatabaseMoody = true;

  constructor(seed: number) {
    this.#random = randomOf(seed);
    this.store.refuse = (rows) => this.#refuse(rows);
    this.store.forgetToSay = () =>
      this.#isDatabaseMoody && this.#random() < 0.1 ? new TypeError("reset") : undefined;
    this.#ledger = this.#start();
  }

  async step(): Promise<void> {
    const draw = this.#random();
    this.#isDiskBroken &&= this.#random() < 0.9;
    if (this.#random() < 0.3) this.#endTurn();
    // Lets the callers of that turn get their answer before a kill.
    await Promise.resolve();
    if (draw < 0.34) void this.#openCall();
    else if (draw < 0.44) this.#checkpoint();
    else if (draw < 0.76) this.#closeCall();
    else if (draw < 0.8) this.#refuseCall();
    else if (draw < 0.9) await this.#ledger.flush().catch(() => undefined);
    else if (draw < 0.95) await Bun.sleep(0);
    else if (draw < 0.97) this.#isDiskBroken = true;
    else if (draw < 0.985) this.#kill();
    else if (draw < 0.99) await this.#restart();
    else this.#clock.advance(300_000);
  }

  /** Repairs everything and shuts down cleanly. */
  async finish(): Promise<void> {
    this.#isDiskBroken = false;
    this.#isDatabaseMoody = false;
    await this.#restart();
    await this.#ledger.flush();
  }

  deadLetters(): string[] {
    const path = join(this.#folder, "dead-letter.ndjson");
    if (!existsSync(path)) return [];
    const lines = readFileSync(path, "utf8").trimEnd().split("\n");
    return lines.map((line) => String(JSON.parse(line).record.id));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#ending, this.#ledger.shutDown()]);
    this.#root[Symbol.dispose]();
  }

  async #openCall(): Promise<void> {
    const id = `req_${this.#calls}${this.#random() < 0.02 ? "_poison" : ""}`;
    this.#calls += 1;
    const life = this.#life;
    const failure = await this.#ledger.calls.open(openedCall(id));
    // A call that the ledger did not open must not run, so it is not expected.
    if (failure !== undefined || life.isOver) return;
    this.expected.set(id, "interrupted");
    if (life === this.#life) this.#open.push(id);
  }

  #checkpoint(): void {
    const id = this.#open[Math.floor(this.#random() * this.#open.length)];
    if (id !== undefined) this.#ledger.calls.checkpoint(id, { outputTokens: 1_000 });
  }

  #closeCall(): void {
    const [id] = this.#open.splice(Math.floor(this.#random() * this.#open.length), 1);
    if (id !== undefined) void this.#close(closedCall(id, { durationMs: this.#calls }));
  }

  #refuseCall(): void {
    this.#calls += 1;
    void this.#close(closedCall(`req_${this.#calls}_refused`, { outcome: "failed", status: 429 }));
  }

  async #close(record: UsageRecord): Promise<void> {
    const { calls } = this.#ledger;
    const life = this.#life;
    const failure = await calls.close(record);
    if (life.isOver) return;
    this.expected.set(record.id, record);
    if (failure !== undefined || !calls.hasRoom) this.uncertain.add(record.id);
  }

  #kill(): void {
    this.kills += 1;
    this.#life.isOver = true;
    const killed = this.#ledger;
    const before = this.#folder;
    this.#folder = "";
    this.#ledger = this.#start(before);
    this.#ending.push(killed.shutDown());
  }

  async #restart(): Promise<void> {
    const disk = this.#isDiskBroken;
    this.#isDiskBroken = false;
    await this.#ledger.shutDown();
    this.#open = [];
    this.#ledger = this.#start();
    this.#isDiskBroken = disk;
  }

  #start(copyOf?: string): Ledger {
    this.#open = [];
    if (this.#folder === "") {
      this.#folder = join(this.#root.path, String(this.kills));
      mkdirSync(this.#folder);
    }
    if (copyOf !== undefined) copySpools(copyOf, this.#folder);
    const life = { isOver: false };
    this.#life = life;
    const ledger = new Ledger({
      folder: this.#folder,
      store: {
        insert: (rows) =>
          life.isOver ? Promise.reject(new StorageUnavailable("dead")) : this.store.insert(rows),
        prune: () => this.store.prune(),
        erase: () => this.store.erase(),
        eraseEndUsers: () => this.store.eraseEndUsers(),
      },
      settings: {
        batchRows: 1 + Math.floor(this.#random() * 20),
        flushIntervalMs: 1,
        sync: this.#random() < 0.5 ? "none" : "group",
        spoolLimitBytes: 100_000_000,
        segmentBytes: 500 + Math.floor(this.#random() * 10_000),
      },
      clock: this.#clock,
      on: new LedgerLog(),
      files: this.#files(),
      atTurnEnd: (write) => void (this.#endTurn = write),
    });
    if (this.#random() < 0.5) ledger.start();
    return ledger;
  }

  #files(): SpoolFiles {
    const fail = (chance: number): void => {
      if (!this.#isDiskBroken || this.#random() > chance) return;
      const code = this.#random() < 0.5 ? "ENOSPC" : "EIO";
      throw Object.assign(new Error(code), { code });
    };
    return {
      ...systemFiles,
      create: (path) => {
        fail(0.2);
        return systemFiles.create(path);
      },
      append: (file, bytes) => {
        fail(0.2);
        if (!this.#isDiskBroken) return systemFiles.append(file, bytes);
        const part = 1 + Math.floor(this.#random() * bytes.length);
        return systemFiles.append(file, bytes.subarray(0, part));
      },
      truncate: (file, bytes) => {
        fail(0.2);
        systemFiles.truncate(file, bytes);
      },
      sync: async (file) => {
        fail(0.3);
        await systemFiles.sync(file);
      },
    };
  }

  #refuse(rows: readonly UsageRecord[]): Error | undefined {
    if (this.#isDatabaseMoody && this.#random() < 0.3) return new StorageUnavailable("locked");
    if (rows.some(({ id }) => id.endsWith("_poison"))) return new RefusedRows("check failed");
    return undefined;
  }
}

for (let seed = 1; seed <= 15; seed += 1) {
  test(`every call is in the ledger exactly once under any failure (seed ${seed})`, async () => {
    await using trial = new Trial(seed);
    for (let steps = 0; steps < 1_000; steps += 1) await trial.step();
    await trial.finish();
    const { store, expected, uncertain } = trial;
    const deadLetters = trial.deadLetters();
    expect(trial.kills).toBeGreaterThan(5);
    expect(expected.size - uncertain.size).toBeGreaterThan(100);
    expect(deadLetters.every((id) => id.endsWith("_poison"))).toBe(true);
    const found = [...store.rows.keys(), ...new Set(deadLetters)];
    const isKnown = (id: string): boolean => !uncertain.has(id);
    expect(found.filter(isKnown).toSorted()).toEqual(
      [...expected.keys()].filter(isKnown).toSorted(),
    );
    for (const [id, record] of store.rows) {
      const wanted = expected.get(id);
      if (uncertain.has(id) && record.outcome === "interrupted") continue;
      if (wanted === "interrupted") expect(record).toMatchObject({ id, outcome: "interrupted" });
      else expect(record).toEqual(wanted ?? closedCall("none expected"));
    }
  });
}
