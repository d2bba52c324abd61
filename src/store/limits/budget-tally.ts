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

interface Reservation {
  readonly tallies: readonly Tally[];
  readonly nano: number;
}

/** By then no clock that is set back leads to the period again. */
const keptAfterEndMs = 2 * 24 * 3_600_000;

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
  /** What processes before this one had spent and reserved when they told it. */
  #before = new Map<string, Map<string, number>>();
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
    if (note.isComplete) {
      for (const process of this.#before.keys()) {
        // All of its calls are stored by now.
        if (!note.processes.includes(process)) this.#before.delete(process);
      }
    }
    for (const [key, { scope, reservedNano }] of this.#tallies) {
      const isOver = scope.period.endsAt + keptAfterEndMs < nowMs;
      if (isOver && reservedNano === 0) this.#tallies.delete(key);
    }
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
    const key = keyOf(scope);
    const stored = this.#stored.get(key);
    let sum = 0;
    if (stored !== undefined) {
      for (const process in stored) if (process !== this.process) sum += stored[process] ?? 0;
    }
    for (const [process, sums] of this.#before) {
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
    if (reservation === undefined) return [];
    this.#reservations.delete(callId);
    const { tallies, nano } = reservation;
    const isCost = costNano !== undefined && Number.isSafeInteger(costNano) && costNano >= 0;
    for (const tally of tallies) {
      tally.reservedNano -= nano;
      tally.spentNano += isCost ? costNano : nano;
    }
    return tallies;
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

export function keyOf({ budget, period }: BudgetScope): string {
  return `${budget.id} ${period.id}`;
}
