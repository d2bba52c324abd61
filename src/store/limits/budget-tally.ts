import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { LimitState } from "../../domain/limits/limit-scope.ts";
import type { BudgetScope, SpendNote } from "../../domain/money/budget.ts";
import { withJitter } from "./decision.ts";
import type { BudgetState, RefusedByLimit } from "./limit-store.ts";

/** What the calls of a process have spent under a budget in one period since its start. */
export interface Tally {
  readonly scope: BudgetScope;
  spentNano: number;
  /** Of calls that run. */
  reservedNano: number;
}

/** Nano-USD by the key of a budget's period. */
export type Sums = Readonly<Record<string, number>>;

/** What a process knows of money, for its successor. */
export interface GivenSpend {
  /** Spent and reserved, by the processes that have calls. */
  readonly sums: Readonly<Record<string, Sums>>;
  /** Calls that run: who has them, and what they reserve under which keys. */
  readonly calls: readonly (readonly [
    callId: string,
    process: string,
    nano: number,
    ...string[],
  ])[];
}

interface Reservation {
  readonly tallies: readonly Tally[];
  readonly nano: number;
}

/** A process before this one. */
interface Before {
  readonly sums: Map<string, number>;
  /** Since when all of its calls seem to be stored, on the wall clock. */
  storedSinceMs: number | undefined;
}

/** A call of a process before this one. */
interface CallBefore {
  readonly process: string;
  readonly nano: number;
  readonly keys: readonly string[];
}

/** By then no clock that is set back leads to the period again. */
const keptAfterEndMs = 2 * 24 * 3_600_000;
/** By then the table has what a process had not stored when it ended. */
const keptAfterStoredMs = 60_000;

/**
 * What a process knows of money: what its own calls have spent and reserved, exactly, and what the
 * database has of all others. Its own stored calls are never added to its own count.
 */
export class BudgetTally {
  /** Names this process in charges. */
  readonly process: string;
  readonly #tallies = new Map<string, Tally>();
  readonly #reservations = new Map<string, Reservation>();
  /** By the key of a budget's period. */
  #stored = new Map<string, Readonly<Record<string, number>>>();
  /** What was spent when the whole table had nothing of it. So it is still when a budget was deleted. */
  #missing: ReadonlyMap<string, number> = new Map();
  /** By process. */
  readonly #before = new Map<string, Before>();
  readonly #callsBefore = new Map<string, CallBefore>();
  #epoch = -1;
  #isComplete = false;
  #processes: readonly string[] = [];

  constructor(process: string) {
    this.process = process;
  }

  /** Whether all is known that other processes have spent. */
  get isKnown(): boolean {
    return this.#isComplete;
  }

  /** Of the processes that may serve calls. */
  get processes(): readonly string[] {
    return this.#processes;
  }

  /** The control thread tells what is stored. */
  hear(note: SpendNote, nowMs: number): void {
    if (note.epoch < this.#epoch && !note.isWhole) return;
    if (note.isWhole) this.#stored = new Map();
    for (const { budgetId, periodId, byProcess } of note.spend) {
      this.#stored.set(`${budgetId} ${periodId}`, byProcess);
    }
    this.#epoch = note.epoch;
    this.#isComplete = note.isComplete;
    this.#processes = note.processes;
    for (const [process, before] of this.#before) {
      if (!note.isComplete || note.processes.includes(process)) before.storedSinceMs = undefined;
      else before.storedSinceMs ??= nowMs;
      const { storedSinceMs = Infinity } = before;
      if (nowMs - storedSinceMs > keptAfterStoredMs) this.#before.delete(process);
    }
    const missing = new Map<string, number>();
    for (const [key, { scope, spentNano, reservedNano }] of this.#tallies) {
      if (reservedNano > 0) continue;
      const isOver = scope.period.endsAt + keptAfterEndMs < nowMs;
      const isMissing = note.isWhole && !this.#stored.has(key);
      if (isMissing) missing.set(key, spentNano);
      if (isOver || (isMissing && this.#missing.get(key) === spentNano)) this.#tallies.delete(key);
    }
    if (note.isWhole) this.#missing = missing;
  }

  /** What the database has, by process. */
  storedOf(scope: BudgetScope): Readonly<Record<string, number>> {
    return this.#stored.get(keyOf(scope)) ?? {};
  }

  all(): Iterable<Tally> {
    return this.#tallies.values();
  }

  tallyOf(scope: BudgetScope): Tally {
    const key = keyOf(scope);
    let tally = this.#tallies.get(key);
    if (tally === undefined) {
      // Only a period that was forgotten long after its end has calls of this process.
      const spentNano = this.#stored.get(key)?.[this.process] ?? 0;
      tally = { scope, spentNano, reservedNano: 0 };
      this.#tallies.set(key, tally);
    }
    return tally;
  }

  /** What all processes have spent, as far as this one knows, without its own. */
  othersNano(scope: BudgetScope): number {
    return this.#othersNano(keyOf(scope));
  }

  #othersNano(key: string): number {
    const stored = this.#stored.get(key);
    let sum = 0;
    if (stored !== undefined) {
      for (const process in stored) if (process !== this.process) sum += stored[process] ?? 0;
    }
    for (const [process, { sums }] of this.#before) {
      sum += Math.max(0, (sums.get(key) ?? 0) - (stored?.[process] ?? 0));
    }
    return sum;
  }

  /** The first budget that has no room for so much more; undefined: all have. */
  refusal(budgets: readonly BudgetScope[], requestNano: number): BudgetState | undefined {
    if (requestNano === 0) return undefined;
    if (!this.#isComplete) throw budgetsUnavailable();
    for (const scope of budgets) {
      const { spentNano: own, reservedNano } = this.tallyOf(scope);
      const spentNano = own + this.othersNano(scope);
      if (spentNano + reservedNano + requestNano > scope.budget.limitNano) {
        return { scope, spentNano, reservedNano, requestNano };
      }
    }
    return undefined;
  }

  reserve(callId: string, budgets: readonly BudgetScope[], nano: number): void {
    const tallies = budgets.map((scope) => this.tallyOf(scope));
    for (const tally of tallies) tally.reservedNano += nano;
    this.#reservations.set(callId, { tallies, nano });
  }

  /** Replaces a reservation by the cost, once; of an unknown cost all of it is spent. */
  settle(callId: string, costNano: number | undefined): readonly Tally[] {
    const reservation = this.#reservations.get(callId);
    if (reservation === undefined) {
      this.#settleBefore(callId, costNano);
      return [];
    }
    this.#reservations.delete(callId);
    const { tallies, nano } = reservation;
    const cost = isCost(costNano) ? costNano : nano;
    for (const tally of tallies) {
      tally.reservedNano -= nano;
      tally.spentNano += cost;
    }
    return tallies;
  }

  #settleBefore(callId: string, costNano: number | undefined): void {
    const call = this.#callsBefore.get(callId);
    if (call === undefined) return;
    this.#callsBefore.delete(callId);
    const { process, nano, keys } = call;
    const less = nano - (isCost(costNano) ? costNano : nano);
    this.include(process, Object.fromEntries(keys.map((key) => [key, -less])));
  }

  /** All that is spent and reserved under each key, by anybody. */
  *totals(): Iterable<[key: string, nano: number]> {
    const keys = new Set([...this.#tallies.keys(), ...this.#stored.keys()]);
    for (const { sums } of this.#before.values()) for (const key of sums.keys()) keys.add(key);
    for (const key of keys) {
      const { spentNano = 0, reservedNano = 0 } = this.#tallies.get(key) ?? {};
      yield [key, spentNano + reservedNano + this.#othersNano(key)];
    }
  }

  /** What this process has spent and reserved. */
  get sums(): Sums {
    const own = Array.from(this.#tallies, ([key, tally]) => {
      return [key, tally.spentNano + tally.reservedNano] as const;
    });
    return Object.fromEntries(own);
  }

  /** For a successor. */
  give(): GivenSpend {
    const before = Array.from(this.#before, ([process, { sums }]) => {
      return [process, Object.fromEntries(sums)] as const;
    });
    const own = Array.from(this.#reservations, ([callId, { tallies, nano }]) => {
      return [callId, this.process, nano, ...tallies.map(({ scope }) => keyOf(scope))] as const;
    });
    const calls = Array.from(this.#callsBefore, ([callId, { process, nano, keys }]) => {
      return [callId, process, nano, ...keys] as const;
    });
    return {
      sums: Object.fromEntries([...before, [this.process, this.sums]]),
      calls: [...own, ...calls],
    };
  }

  /** Goes on after processes that may still serve. */
  goOn({ sums, calls }: GivenSpend): void {
    for (const [process, of] of Object.entries(sums)) this.include(process, of);
    for (const [callId, process, nano, ...keys] of calls) {
      this.#callsBefore.set(callId, { process, nano, keys });
    }
  }

  /** A process before this one has spent so much more. */
  include(process: string, sums: Sums): void {
    const sum = new Map<string, number>();
    const before = this.#before.get(process) ?? { sums: sum, storedSinceMs: undefined };
    this.#before.set(process, before);
    for (const [key, nano] of Object.entries(sums)) {
      before.sums.set(key, (before.sums.get(key) ?? 0) + nano);
    }
  }

  /** Counts what this process admits from now on by itself, within a part of the budgets. */
  apart(): BudgetTally {
    const tally = new BudgetTally(this.process);
    tally.#isComplete = this.#isComplete;
    return tally;
  }

  /** Takes over what was counted apart for this process. */
  absorb(apart: BudgetTally): void {
    for (const [key, other] of apart.#tallies) {
      const tally = this.#tallies.get(key);
      if (tally === undefined) this.#tallies.set(key, other);
      else {
        tally.spentNano += other.spentNano;
        tally.reservedNano += other.reservedNano;
      }
    }
    for (const [callId, { tallies, nano }] of apart.#reservations) {
      const own = tallies.map(({ scope }) => this.tallyOf(scope));
      this.#reservations.set(callId, { tallies: own, nano });
    }
  }
}

/** Running calls end soon, but when cannot be predicted. */
const reservedWaitMs = 2_000;

/** `state`: of the first scope's id. */
export function refusedByBudget(
  budget: BudgetState,
  state: LimitState,
  random: () => number,
): RefusedByLimit {
  const { scope, spentNano, requestNano } = budget;
  const isSpent = spentNano + requestNano > scope.budget.limitNano;
  const retryAfterMs = isSpent ? undefined : withJitter(reservedWaitMs, random);
  return {
    isAdmitted: false,
    scopeId: scope.budget.id,
    dimension: "money",
    budget,
    freeAfterMs: undefined,
    retryAfterMs,
    state,
    debt: 0,
  };
}

/** What calls under budgets get while nobody knows what was spent. */
export function budgetsUnavailable(cause?: unknown): GatewayError {
  return new GatewayError("model_unavailable", {
    message:
      "The budgets that your API key is under cannot be checked at the moment. Please retry your " +
      "request.",
    headers: { "retry-after": "1" },
    cause,
    explanation: {
      rule: "budgets_unavailable",
      summary:
        "What was spent under the budgets of the key is not known: the process has just started, " +
        "the calls of a process that ended are not stored yet, or the server of limits.store does " +
        "not answer or has lost its data. `sluice status` shows which.",
    },
  });
}

function isCost(costNano: number | undefined): costNano is number {
  return costNano !== undefined && Number.isSafeInteger(costNano) && costNano >= 0;
}

export function keyOf({ budget, period }: BudgetScope): string {
  return `${budget.id} ${period.id}`;
}
