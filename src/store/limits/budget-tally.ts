import type { LimitState } from "../../domain/limits/limit-scope.ts";
import {
  type BudgetScope,
  mostEndUsers,
  otherEndUsers,
  scopeIdOf,
  type SpendNote,
} from "../../domain/money/budget.ts";
import { withJitter } from "./decision.ts";
import type { FullBudget, RefusedByLimit } from "./limit-store.ts";

/** What the calls of a process have spent under a budget in one period since its start. */
export interface Tally {
  readonly scope: BudgetScope;
  spentNano: number;
  /** Of calls that run. */
  reservedNano: number;
  /** Since its last call. */
  idleHours: number;
}

/** Nano-USD by the key of a budget's period. */
export type Sums = Readonly<Record<string, number>>;

/** What each process has spent and reserved. */
export type SpendByProcess = Readonly<Record<string, Sums>>;

interface Reservation {
  readonly tallies: readonly Tally[];
  readonly nano: number;
}

/** What a process had spent and reserved when this one began in its place. It admits no more. */
interface Predecessor {
  readonly sums: Sums;
  /** Since when all of its calls seem to be stored, in monotonic time. */
  storedSinceMs: number | undefined;
}

/** What the database has of a budget in a period. */
interface Stored {
  /** Of the note. */
  readonly epoch: number;
  readonly byProcess: Readonly<Record<string, number>>;
  /** The sum of all but this process. */
  readonly othersNano: number;
}

const nothingStored: Stored = { epoch: -1, byProcess: {}, othersNano: 0 };

/** By then the table has what a process had not stored when it ended. */
const storedAfterMs = 60_000;
const dayMs = 86_400_000;
/** Two days: by then the table has all calls of a tally that is not used. */
const mostIdleHours = 48;

/**
 * What a process counts of money: what its own calls have spent and reserved, exactly, and what the
 * database has of all others. Its own stored calls are never added to its own count.
 */
export class BudgetTally {
  /** Names this process in charges. */
  readonly process: string;
  readonly #tallies = new Map<string, Tally>();
  readonly #reservations = new Map<string, Reservation>();
  /** By the key of a budget's period. */
  #stored = new Map<string, Stored>();
  readonly #predecessors = new Map<string, Predecessor>();
  /** How many end users a budget counts apart, by the key of its period. */
  #endUsers = new Map<string, number>();
  /** The newest one, without the spend. */
  note: Omit<SpendNote, "spend" | "isWhole"> = {
    epoch: -1,
    isComplete: false,
    processes: [],
    silent: [],
  };

  constructor(process: string) {
    this.process = process;
  }

  /** What is stored now. */
  update(note: SpendNote, nowMs: number): void {
    const { epoch, isWhole, spend, ...rest } = note;
    if (epoch < this.note.epoch && !isWhole) return;
    if (isWhole) this.#beginAnew();
    for (const { budgetId, periodId, byProcess } of spend) {
      let othersNano = 0;
      for (const process in byProcess) {
        if (process !== this.process) othersNano += byProcess[process] ?? 0;
      }
      const key = `${budgetId} ${periodId}`;
      if (!this.#isKnown(key)) this.#countEndUser(key);
      this.#stored.set(key, { epoch, byProcess, othersNano });
    }
    this.note = { epoch, ...rest };
    for (const [process, predecessor] of this.#predecessors) {
      const mayRun = note.processes.includes(process) || note.silent.includes(process);
      if (!note.isComplete || mayRun) {
        predecessor.storedSinceMs = undefined;
      } else predecessor.storedSinceMs ??= nowMs;
      const { storedSinceMs = Infinity } = predecessor;
      if (nowMs - storedSinceMs > storedAfterMs) this.#predecessors.delete(process);
    }
  }

  /** Once an hour. */
  #beginAnew(): void {
    this.#stored = new Map();
    for (const [key, tally] of this.#tallies) {
      if (tally.reservedNano > 0) continue;
      tally.idleHours += 1;
      if (tally.idleHours > mostIdleHours) this.#tallies.delete(key);
    }
    this.#endUsers = new Map();
    const taken = [...this.#predecessors.values()].flatMap(({ sums }) => Object.keys(sums));
    for (const key of new Set([...this.#tallies.keys(), ...taken])) this.#countEndUser(key);
  }

  #isKnown(key: string): boolean {
    if (this.#stored.has(key) || this.#tallies.has(key)) return true;
    for (const { sums } of this.#predecessors.values()) if (key in sums) return true;
    return false;
  }

  #countEndUser(key: string): void {
    const ofAll = key.replace(/\/\S+/, "");
    if (ofAll !== key) this.#endUsers.set(ofAll, (this.#endUsers.get(ofAll) ?? 0) + 1);
  }

  /** Where a call counts: a flood of names fills no memory. */
  placeOf(scope: BudgetScope): BudgetScope {
    const { budget, period, endUser } = scope;
    if (endUser === undefined || this.#isKnown(keyOf(scope))) return scope;
    const apart = this.#endUsers.get(keyOf({ budget, period })) ?? 0;
    return apart < mostEndUsers ? scope : { budget, period, endUser: otherEndUsers };
  }

  storedOf(scope: BudgetScope): Stored {
    return this.#stored.get(keyOf(scope)) ?? nothingStored;
  }

  all(): Iterable<Tally> {
    return this.#tallies.values();
  }

  tallyOf(scope: BudgetScope): Tally {
    const key = keyOf(scope);
    let tally = this.#tallies.get(key);
    if (tally === undefined) {
      const spentNano = this.#stored.get(key)?.byProcess[this.process] ?? 0;
      tally = { scope, spentNano, reservedNano: 0, idleHours: 0 };
      if (!this.#isKnown(key)) this.#countEndUser(key);
      this.#tallies.set(key, tally);
    }
    return tally;
  }

  /** What all other processes have spent. */
  #othersNano(key: string): number {
    const { byProcess: stored, othersNano } = this.#stored.get(key) ?? nothingStored;
    let sum = othersNano;
    for (const [process, { sums }] of this.#predecessors) {
      sum += Math.max(0, (sums[key] ?? 0) - (stored[process] ?? 0));
    }
    return sum;
  }

  /** Those that have no room for so much more; none of them while that is not known. */
  full(budgets: readonly BudgetScope[], requestNano: number): readonly FullBudget[] | undefined {
    if (requestNano === 0) return undefined;
    if (!this.note.isComplete) return [];
    let full: FullBudget[] | undefined;
    for (const scope of budgets) {
      const { spentNano: own, reservedNano } = this.tallyOf(scope);
      const spentNano = own + this.#othersNano(keyOf(scope));
      if (spentNano + reservedNano + requestNano <= scope.budget.limitNano) continue;
      (full ??= []).push({ scope, spentNano, reservedNano, requestNano });
    }
    return full;
  }

  reserve(callId: string, budgets: readonly BudgetScope[], nano: number): void {
    const tallies = budgets.map((scope) => this.tallyOf(scope));
    for (const tally of tallies) {
      tally.reservedNano += nano;
      tally.idleHours = 0;
    }
    this.#reservations.set(callId, { tallies, nano });
  }

  /** Replaces a reservation by the cost, once; of an unknown cost all of it is spent. */
  settle(callId: string, costNano: number | undefined): readonly Tally[] {
    const reservation = this.#reservations.get(callId);
    if (reservation === undefined) return [];
    this.#reservations.delete(callId);
    const { tallies, nano } = reservation;
    const cost = isCost(costNano) ? costNano : nano;
    for (const tally of tallies) {
      tally.reservedNano -= nano;
      tally.spentNano += cost;
    }
    return tallies;
  }

  /** What running calls have reserved. */
  get reservedNano(): Sums {
    const sums: Record<string, number> = {};
    for (const { tallies } of this.#reservations.values()) {
      for (const { scope, reservedNano } of tallies) {
        if (reservedNano > 0) sums[keyOf(scope)] = reservedNano;
      }
    }
    return sums;
  }

  /** Of this process and those before it, for a successor, without periods that are over. */
  byProcess(now: number): SpendByProcess {
    const own = [...this.#tallies]
      .filter(([key, tally]) => !this.#isOver(key, tally, now))
      .map(([key, { spentNano, reservedNano }]) => [key, spentNano + reservedNano] as const);
    const predecessors = Array.from(this.#predecessors, ([process, { sums }]) => {
      return [process, sums] as const;
    });
    return Object.fromEntries([...predecessors, [this.process, Object.fromEntries(own)]]);
  }

  /** Also if the clock is set back a little: the table has it, or the period ended a day ago. */
  #isOver(key: string, { scope, spentNano, reservedNano }: Tally, now: number): boolean {
    const { endsAt } = scope.period;
    if (reservedNano > 0 || endsAt > now) return false;
    const storedNano = this.#stored.get(key)?.byProcess[this.process] ?? -1;
    return storedNano >= spentNano || endsAt + dayMs <= now;
  }

  /** Counts what processes before this one had spent and reserved, until the table has all of it. */
  follow(predecessors: SpendByProcess): void {
    for (const [process, sums] of Object.entries(predecessors)) {
      for (const key in sums) if (!this.#isKnown(key)) this.#countEndUser(key);
      this.#predecessors.set(process, { sums, storedSinceMs: undefined });
    }
  }
}

/** Running calls end soon, but when cannot be predicted. */
const reservedWaitMs = 2_000;

/** `full`: none while nobody knows. `state`: of the first scope's id. */
export function refusedByBudgets(
  full: readonly FullBudget[],
  state: LimitState,
  random: () => number,
): RefusedByLimit {
  const budgets = full.toSorted((one, other) => roomAt(other) - roomAt(one));
  const [last] = budgets;
  const isReserved = last === undefined || roomAt(last) === 0;
  return {
    isAdmitted: false,
    scopeId: last?.scope.budget.id ?? "",
    dimension: "money",
    budgets,
    freeAfterMs: undefined,
    retryAfterMs: isReserved ? withJitter(reservedWaitMs, random) : undefined,
    state,
    debt: 0,
  };
}

/** From when a budget can have room, in milliseconds since the epoch; 0: when running calls end. */
function roomAt({ scope: { budget, period }, spentNano, requestNano }: FullBudget): number {
  if (requestNano > budget.limitNano) return Infinity;
  return spentNano + requestNano > budget.limitNano ? period.endsAt : 0;
}

function isCost(costNano: number | undefined): costNano is number {
  return costNano !== undefined && Number.isSafeInteger(costNano) && costNano >= 0;
}

export function keyOf(scope: BudgetScope): string {
  return `${scopeIdOf(scope)} ${scope.period.id}`;
}
