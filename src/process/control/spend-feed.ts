import type { Clock } from "../../domain/clock.ts";
import type { SpendNote } from "../../domain/money/budget.ts";
import { Coalesced } from "../../domain/waiting/coalesced.ts";
import { wait } from "../../domain/waiting/wait.ts";
import type { KeyChanges } from "../../store/store.ts";
import type { OwnProcessRow, ProcessRow } from "../../store/process-row.ts";
import type { SpendStore } from "../../store/repositories/budgets/spend.ts";
import { isLive } from "../../control/platform/process-differences.ts";
import { isRunningHere, machineOf } from "./process-rows.ts";

/** What the feed needs to know of this process as it is now; its row may be a second old. */
export type OwnState = Pick<OwnProcessRow, "chargesAs" | "ingest">;

export interface SpendFeedOptions {
  readonly store: SpendStore;
  readonly clock: Clock;
  /** The rows of all processes; undefined while they are not known. */
  readonly rows: () => { readonly own: string; readonly rows: readonly ProcessRow[] } | undefined;
  readonly state: () => OwnState;
  readonly tell: (note: SpendNote) => void;
}

const lookIntervalMs = 1_000;
/** A note has all then: periods end, and budgets are deleted. */
const wholeIntervalMs = 3_600_000;
/** Until all is known, calls under budgets that refuse wait for it. */
const hastyIntervalMs = 100;

/** Tells the main thread what is spent under budgets, by all processes on the database. */
export class SpendFeed {
  readonly #options: SpendFeedOptions;
  readonly #stopping = new AbortController();
  readonly #looking = new Coalesced(() => this.#look());
  #running: Promise<void> | undefined;
  #epoch = 0;
  #wholeAtMs = -Infinity;
  /** By the wall clock: set back, it may lead to a period that was over by then. */
  #wholeFor = -Infinity;
  #counted: WhoCounts | undefined;

  constructor(options: SpendFeedOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.#looking.idle();
  }

  /**
   * Returns the keys once the main thread has what was spent under their budgets: a new one may be spent
   * already. Throws `StorageUnavailable`.
   */
  async beforeKeys(page: KeyChanges): Promise<KeyChanges> {
    const hasBudgets = page.changes.some(({ live }) => live?.budgets !== undefined);
    // Without the database, the last note stays.
    if (hasBudgets && page.ageMs === undefined) await this.#looking.run();
    return page;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      // Others report that the database is unavailable.
      await this.#looking.run().catch(() => undefined);
      await wait(
        this.#counted?.isComplete === true ? lookIntervalMs : hastyIntervalMs,
        signal,
        this.#options.clock,
      );
    }
  }

  async #look(): Promise<void> {
    const { store, clock, rows, state, tell } = this.#options;
    // Before the spend is read: what was stored by then is in it.
    const seen = rows();
    // A database that is read but not written says nothing new of processes.
    const counted = (seen === undefined && this.#counted) || whoCounts(seen, state());
    const now = clock.now();
    const isDue = clock.monotonic() - this.#wholeAtMs >= wholeIntervalMs || now < this.#wholeFor;
    const stored = await store.since(isDue ? 0 : this.#epoch, now);
    if (stored.isWhole) {
      this.#wholeAtMs = clock.monotonic();
      this.#wholeFor = now;
    }
    this.#epoch = stored.epoch;
    this.#counted = counted;
    tell({ ...stored, ...counted });
  }
}

type WhoCounts = Pick<SpendNote, "isComplete" | "processes" | "silent">;

/**
 * Which processes may serve calls, and whether the calls of all others are stored. A machine that gives no
 * sign counts as gone: what it had not stored comes with its return.
 */
export function whoCounts(seen: ReturnType<SpendFeedOptions["rows"]>, state: OwnState): WhoCounts {
  const { own = "", rows = [] } = seen ?? {};
  const others = rows.filter((row) => row.id !== own && isLive(row));
  // The row of a leader that was killed says nothing of its own spool.
  const ofMachine = others.filter(
    ({ id }) => machineOf(id) === machineOf(own) && isRunningHere(id),
  );
  const isStored = [state, ...ofMachine].some(({ ingest }) => ingest === "done");
  const isBehind = [state, ...others].some(({ ingest }) => ingest === "behind");
  const processes = [state, ...others].flatMap(({ chargesAs }) => chargesAs ?? []);
  const silent = rows.filter((row) => !isLive(row)).flatMap(({ chargesAs }) => chargesAs ?? []);
  return { isComplete: seen !== undefined && isStored && !isBehind, processes, silent };
}
