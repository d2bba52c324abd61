import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { UsageRecord, CallLedger } from "../../src/domain/usage/usage.ts";
import { Ledger, type LedgerEvents } from "../support/whole-ledger.ts";
import { StorageUnavailable } from "../../src/store/errors.ts";
import type { UsageStore } from "../../src/store/store.ts";
import { copySpools } from "../support/ledger-fixtures.ts";
import type { Random } from "./random.ts";
import type { ProcessClock } from "./virtual-time.ts";
import { violate, type World } from "./world.ts";

const flushIntervalMs = 1_000;
/** A file is stored, replaced by another one, and removed. */
const flushesToRest = 3;
const settings = {
  batchRows: 20,
  flushIntervalMs,
  // Power does not fail here, only processes do.
  sync: "none",
  spoolLimitBytes: 1e9,
  segmentBytes: 20_000,
} as const;

/** The ledger's database: slow, sometimes unavailable, and some commits lose their answer. */
export class UsageDatabase {
  readonly rows = new Map<string, UsageRecord>();
  readonly #world: World;
  readonly #random: Random;
  #downUntil = 0;

  constructor(world: World) {
    this.#world = world;
    this.#random = world.random.fork("database");
  }

  goAway(forMs: number): void {
    this.#downUntil = this.#world.time.now + forMs;
  }

  comeBack(): void {
    this.#downUntil = 0;
  }

  readonly insert = (records: readonly UsageRecord[]): Promise<void> =>
    new Promise((resolve, reject) => {
      this.#world.time.schedule(
        () => {
          if (this.#world.time.now < this.#downUntil) return reject(new StorageUnavailable("away"));
          for (const record of records) this.#keep(record);
          if (this.#random.chance(0.02)) reject(new StorageUnavailable("the answer was lost"));
          else resolve();
        },
        this.#random.number(0.5, 30),
      );
    });

  /** A known row stays unchanged; two records of one call must be equal. */
  #keep(record: UsageRecord): void {
    const known = this.rows.get(record.id);
    if (known === undefined) {
      this.rows.set(record.id, record);
      this.#world.log.note(`row: ${record.outcome} ${record.status}`, record.id);
    } else if (known.outcome !== record.outcome || known.outputTokens !== record.outputTokens) {
      const text = `accounted for as ${known.outcome}, and again as ${record.outcome}`;
      violate(this.#world, "ledger", text, record.id);
    }
  }
}

/** The folder of a run's spools, in memory if the system has such a file system. */
export class SpoolFolder {
  readonly #path: string;
  #folders = 0;

  constructor() {
    this.#path = mkdtempSync(join(memoryFolder(), "sluice-simulation-"));
  }

  next(): string {
    this.#folders += 1;
    const path = join(this.#path, String(this.#folders));
    mkdirSync(path);
    return path;
  }

  remove(): void {
    rmSync(this.#path, { recursive: true, force: true });
  }
}

function memoryFolder(): string {
  try {
    readdirSync("/dev/shm");
    return "/dev/shm";
  } catch {
    return tmpdir();
  }
}

export interface ProcessLedgerOptions {
  readonly world: World;
  readonly database: UsageDatabase;
  readonly clock: ProcessClock;
  /** The folder of this process only. */
  readonly folder: string;
  readonly onOpened: Parameters<typeof watched>[1]["onOpened"];
  readonly onClosed: (record: UsageRecord) => void;
}

/**
 * The real ledger on real files, which a process leaves when it ends. Only its timer is replaced by
 * the clock of the run.
 */
export class ProcessLedger {
  readonly calls: CallLedger;
  readonly #ledger: Ledger;
  readonly #folder: string;
  readonly #open = new Set<string>();
  /** Complete flushes until nothing is left to do for ended calls. */
  #dueFlushes = flushesToRest;
  #isRunning = true;

  constructor(options: ProcessLedgerOptions) {
    const { database, clock, folder } = options;
    this.#folder = folder;
    const insert: UsageStore["insert"] = (records) =>
      this.#isRunning
        ? database.insert(records)
        : Promise.reject(new StorageUnavailable("the process has ended"));
    const store = {
      insert,
      prune: () => Promise.resolve(0),
      erase: () => Promise.resolve(0),
      eraseEndUsers: () => Promise.resolve(0),
    };
    const on = eventsFor(options.world);
    const atTurnEnd = (write: () => void): void => void clock.schedule(write, 0);
    this.#ledger = new Ledger({ folder, store, settings, clock, on, atTurnEnd });
    this.calls = watched(this.#ledger, {
      onOpened: (call) => {
        this.#open.add(call.id);
        options.onOpened(call);
      },
      onClosed: (record) => {
        this.#open.delete(record.id);
        this.#dueFlushes = flushesToRest;
        options.onClosed(record);
      },
    });
    const tick = (): void => {
      if (this.#open.size > 0 || this.#dueFlushes > 0) void this.#flushDue();
      clock.schedule(tick, flushIntervalMs);
    };
    clock.schedule(tick, flushIntervalMs);
  }

  /** Whether all rows were stored. */
  flush(): Promise<boolean> {
    return this.#ledger.flush().then(
      () => true,
      () => false,
    );
  }

  async #flushDue(): Promise<void> {
    if (await this.flush()) this.#dueFlushes -= 1;
  }

  /** Ends the process at once; the next one finds the written files in `folder`. */
  crash(folder: string): void {
    copySpools(this.#folder, folder);
    this.close();
  }

  /** Releases the system's resources, without any effect on the run. */
  close(): void {
    this.#isRunning = false;
    this.#ledger.shutDown().catch(() => undefined);
  }
}

function watched(
  ledger: Ledger,
  on: {
    readonly onOpened: (call: Parameters<CallLedger["open"]>[0]) => void;
    readonly onClosed: (record: UsageRecord) => void;
  },
): CallLedger {
  return {
    get hasRoom() {
      return ledger.calls.hasRoom;
    },
    async open(call) {
      const failure = await ledger.calls.open(call);
      if (failure === undefined) on.onOpened(call);
      return failure;
    },
    checkpoint: (callId, delivered) => ledger.calls.checkpoint(callId, delivered),
    async close(record) {
      const failure = await ledger.calls.close(record);
      on.onClosed(record);
      return failure;
    },
  };
}

function eventsFor(world: World): LedgerEvents {
  const nothing = (): void => undefined;
  const never = (what: string) => () => violate(world, "ledger", what);
  return {
    writeFailed: nothing,
    written: nothing,
    spoolFailed: never("the spool failed"),
    spoolRecovered: nothing,
    nearlyFull: nothing,
    hasRoomAgain: nothing,
    replayed: ({ skippedBytes }) => {
      if (skippedBytes > 0) violate(world, "ledger", `${skippedBytes} bytes could not be read`);
    },
    fileSkipped: (path, reason) => violate(world, "ledger", `${path} cannot be read: ${reason}`),
    damaged: never("a file of the spool is damaged"),
    deadLettered: never("a row was put aside"),
    lost: nothing,
  };
}
