import { expect } from "bun:test";
import { ManualClock } from "../support/manual-clock.ts";
import type { SpendNote } from "../../src/domain/money/budget.ts";
import type { Limits } from "../../src/domain/limits/plan.ts";
import {
  type LimitScope,
  type LimitState,
  minuteScopes,
} from "../../src/domain/limits/limit-scope.ts";
import type { LimitDecision, LimitStore } from "../../src/store/limits/limit-store.ts";

/** `tick` runs each second where a store has it. */
export type TimedLimitStore = LimitStore & {
  tick?(): Promise<void>;
  updateSpend?(note: SpendNote): void;
};

export type CreateLimitStore = (clock: ManualClock) => TimedLimitStore | Promise<TimedLimitStore>;

/** The limits of one id. */
export type Scopes = readonly LimitScope[];

/** One store and its clock, made anew for each test. */
export class LimitStoreFixture {
  readonly #create: CreateLimitStore;
  #clock = new ManualClock();
  #store: TimedLimitStore | undefined;
  #callCount = 0;

  constructor(create: CreateLimitStore) {
    this.#create = create;
  }

  get clock(): ManualClock {
    return this.#clock;
  }

  get store(): LimitStore {
    if (this.#store === undefined) throw new Error("the fixture was not reset");
    return this.#store;
  }

  async reset(): Promise<void> {
    this.#clock = new ManualClock({ monotonicMs: 1_000_000 });
    this.#store = await this.#create(this.#clock);
  }

  updateSpend(note: SpendNote): void {
    this.#store?.updateSpend?.(note);
  }

  /** A long time, in which the store does what it does each second. */
  async pass(durationMs: number): Promise<void> {
    for (let left = durationMs; left > 0; left -= 1_000) {
      this.clock.advance(Math.min(left, 1_000));
      await this.#store?.tick?.();
    }
  }

  acquire(scopes: readonly Scopes[], tokens: number): Promise<LimitDecision> {
    this.#callCount += 1;
    return this.acquireAs(`anonymous ${this.#callCount}`, scopes, tokens);
  }

  async acquireAs(
    callId: string,
    scopes: readonly Scopes[],
    tokens: number,
  ): Promise<LimitDecision> {
    return this.store.acquire({ callId, scopes: scopes.flat(), tokens });
  }

  /** What a scope has left, asked by a request that can never be charged. */
  async left(scopes: Scopes): Promise<LimitState> {
    const ofTokens = scopes.find(({ unit }) => unit === "tokens");
    const decision = await this.acquire([scopes], (ofTokens?.limit ?? 0) + 1);
    expect(decision.isAdmitted).toBe(false);
    return decision.state;
  }
}

export function scopeOf(id: string, limits: Partial<Limits>, overrunFactor?: number): Scopes {
  const all = { requestsPerMinute: 1_000, tokensPerMinute: 1_000_000, ...limits };
  return minuteScopes(id, all, { overrunFactor, owner: "contract" });
}

export function waitOf(decision: LimitDecision): number {
  if (decision.isAdmitted) throw new Error("the request was admitted");
  if (decision.retryAfterMs === undefined) throw new Error("the request never fits");
  return decision.retryAfterMs;
}

export function repeat<Result>(count: number, action: (index: number) => Result): Result[] {
  return Array.from({ length: count }, (_, index) => action(index));
}

export async function repeatInOrder(count: number, action: () => Promise<unknown>): Promise<void> {
  for (let index = 0; index < count; index++) await action();
}
