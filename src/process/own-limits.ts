import type { CountedRequest, LimitScope } from "../domain/limits/limit-scope.ts";
import type { ReadLimits } from "../domain/live-facts.ts";
import type { BudgetScope, SpendNote } from "../domain/money/budget.ts";
import { countedSlots, slotMs } from "../domain/limits/slots.ts";
import {
  MemoryLimitStore,
  type LimitsState,
  type MemoryLimitStoreOptions,
} from "../store/limits/memory/limit-store.ts";
import { refusedByBudgets, type SpendByProcess, type Sums } from "../store/limits/budget-tally.ts";
import { refusedByShare, stateOfWhole } from "../store/limits/decision.ts";
import type {
  CountDecision,
  LimitDecision,
  LimitRequest,
  LimitStore,
} from "../store/limits/limit-store.ts";
import { type NamedScope, nameOf, type ScopeUse } from "../store/limits/window.ts";

/** The limits as a process gives them to its successor. */
export interface GivenLimits {
  readonly state: LimitsState;
  /** For each process that still serves kept connections, the oldest first: what was used when. */
  readonly givers: readonly ChargedScopes[];
  /** Undefined: the process has ended, and its calls are in the database or will be. */
  readonly spend?: SpendByProcess | undefined;
}

/** What is charged, by scope. */
export type ChargedScopes = Readonly<Record<string, number>>;

/** What a process tells its successor after it has given the limits away. */
export type LimitsNote =
  /** A call that was open has ended with so many tokens. */
  | { readonly settle: readonly [callId: string, tokens: number] }
  /** What it has admitted itself since. */
  | { readonly include: readonly ScopeUse[] }
  /** So many of the oldest givers have ended. */
  | { readonly ended: number };

interface Gift {
  readonly tell: (note: LimitsNote) => void;
  /** Calls that the successor settles. */
  readonly calls: ReadonlySet<string>;
  /** The limits as they were given, and all that was told since. */
  readonly before: Own;
}

interface Own {
  readonly store: MemoryLimitStore;
  /** As in `GivenLimits`. The last one is this process, if it has given its limits away. */
  givers: readonly ChargedScopes[];
}

/**
 * The limits of a gateway with one process, in its memory. While a successor starts, both grant
 * parts of them: half of what is left of each limit stays with the process that gives them away,
 * for its kept connections. So both together never exceed a limit, without a message about it. Of
 * budgets nothing stays: calls under one go to the successor, by a retry on a new connection.
 */
export class OwnLimits implements LimitStore {
  readonly #options: MemoryLimitStoreOptions;
  #own: Own;
  #gift: Gift | undefined;
  /** Calls of the processes before, which those settle. */
  #adopted: readonly string[] = [];
  #stopTimer = (): void => undefined;

  constructor(options: MemoryLimitStoreOptions) {
    this.#options = options;
    this.#own = { store: new MemoryLimitStore(options), givers: [] };
  }

  get process(): string {
    return this.#own.store.process;
  }

  placeOf(scope: BudgetScope): BudgetScope {
    return this.#own.store.placeOf(scope);
  }

  /** What is stored of spend. */
  updateSpend(note: SpendNote): void {
    this.#own.store.updateSpend(note);
  }

  get reservedNano(): Sums {
    return this.#own.store.tally.reservedNano;
  }

  get isGiven(): boolean {
    return this.#gift !== undefined;
  }

  count(scopes: readonly LimitScope[]): CountDecision {
    const { store } = this.#own;
    if (this.#isWhole) return store.count(scopes);
    const decision = store.count(this.#partOf(scopes));
    if (!decision.isAdmitted) return refusedByShare(decision, { scopes, tokens: 0 });
    const { counted, wouldRefuse } = decision;
    return { isAdmitted: true, counted: { scopes, slot: counted.slot }, wouldRefuse };
  }

  /** Once the limits are given away, a request stays counted: it may have been counted before. */
  uncount(counted: CountedRequest): void {
    if (this.#gift !== undefined) return;
    this.#own.store.uncount({ ...counted, scopes: this.#partOf(counted.scopes) });
  }

  acquire(request: LimitRequest): LimitDecision {
    const { store } = this.#own;
    if (this.#isWhole) return store.acquire(request);
    const { scopes, reserveNano = 0 } = request;
    if (this.#gift !== undefined && reserveNano > 0) {
      const refusal = refusedByBudgets([], this.#own.store.peek(scopes), this.#options.random);
      return { ...refusal, isElsewhere: true };
    }
    const decision = store.acquire({ ...request, scopes: this.#partOf(scopes) });
    if (!decision.isAdmitted) {
      return decision.budgets === undefined ? refusedByShare(decision, request) : decision;
    }
    const { wouldRefuse } = decision;
    const state = stateOfWhole(decision.state, scopes, scopes[0]?.id);
    return { isAdmitted: true, state, wouldRefuse };
  }

  use(callId: string, tokens: number): void {
    this.#storeOf(callId).use(callId, tokens);
  }

  settle(callId: string, tokens: number, costNano?: number): void {
    this.#storeOf(callId).settle(callId, tokens, costNano);
    if (this.#gift?.calls.has(callId) === true) this.#gift.tell({ settle: [callId, tokens] });
  }

  /** What this process has counted. */
  readonly read = ((of) => of.map((scopes) => this.#own.store.peek(scopes))) satisfies ReadLimits;

  /** What this process knows of scopes, by default all, for a successor that starts after its end. */
  snapshot(isWanted?: (scopeId: string) => boolean): GivenLimits {
    const { store, givers } = this.#own;
    return { state: store.state(isWanted), givers };
  }

  /** Goes on where a process has ended this long ago, or where one gives its limits away now. */
  goOn({ state, givers, spend }: GivenLimits, agoMs: number): void {
    this.#own.store.goOn(state, agoMs);
    if (spend !== undefined) this.#own.store.tally.follow(spend);
    this.#own = { store: this.#own.store, givers };
    this.#adopted = state.calls.map(({ callId }) => callId);
  }

  /** What other processes have admitted, in this one's time. */
  include(uses: readonly ScopeUse[]): void {
    this.#own.store.include(uses);
    this.#gift?.tell({ include: uses });
  }

  hear(note: LimitsNote): void {
    if ("settle" in note) this.settle(...note.settle);
    else if ("include" in note) this.include(note.include);
    else this.#forget(note.ended);
  }

  /** The processes before have ended without a word: what they granted counts for a minute. */
  giversLost(): void {
    this.#stopTimer = this.#options.clock.schedule(() => this.giversEnded(), countedSlots * slotMs);
  }

  /**
   * The processes before have ended, and this one grants the whole limits. Their calls that are not
   * settled keep what is charged for them.
   */
  giversEnded(): void {
    for (const callId of this.#adopted) this.settle(callId, Number.NaN);
    this.#adopted = [];
    this.#forget((this.#gift?.before ?? this.#own).givers.length);
  }

  /** The oldest givers have ended: nothing is kept for them, here or by the processes after this. */
  #forget(count: number): void {
    if (count === 0) return;
    const { before = this.#own, tell } = this.#gift ?? {};
    for (const own of new Set([before, this.#own])) own.givers = own.givers.slice(count);
    tell?.({ ended: count });
  }

  /** From now on this process grants only its part; `tell` is called with what happens to calls. */
  give(tell: Gift["tell"]): GivenLimits {
    const before = this.#own;
    const state = before.store.state();
    const givers = [...before.givers, chargedIn(state)];
    const calls = new Set(state.calls.map(({ callId }) => callId));
    const store = new MemoryLimitStore({ ...this.#options, tally: before.store.tally });
    // In the same time, and without anything in it.
    store.goOn({ now: state.now, uses: [], calls: [] }, 0);
    this.#own = { store, givers };
    this.#gift = { tell, calls, before };
    return { state, givers, spend: before.store.tally.byProcess(this.#options.clock.now()) };
  }

  /** The successor could not start. */
  takeBack(): void {
    if (this.#gift === undefined) return;
    const { before } = this.#gift;
    const { uses, calls } = this.#own.store.state();
    before.store.include(uses);
    for (const call of calls) before.store.adopt(call);
    this.#own = before;
    this.#gift = undefined;
  }

  /** Tells the successor what was admitted here since. */
  end(): void {
    // It would keep the process, if that ends by itself.
    this.#stopTimer();
    this.#gift?.tell({ include: this.#own.store.state().uses });
  }

  get #isWhole(): boolean {
    return this.#own.givers.length === 0;
  }

  #storeOf(callId: string): MemoryLimitStore {
    const gift = this.#gift;
    return gift?.calls.has(callId) === true ? gift.before.store : this.#own.store;
  }

  #partOf(scopes: readonly LimitScope[]): readonly LimitScope[] {
    if (this.#isWhole) return scopes;
    const { givers } = this.#own;
    const isGiver = this.#gift !== undefined;
    return scopes.map((scope) => {
      if (scope.isAudited === true) return scope;
      const limit = partOf(scope.limit, keyOf(nameOf(scope)), { givers, isGiver });
      return { ...scope, limit };
    });
  }
}

/** Each giver has kept half of what was left to it; `isGiver`: the part of the last one. */
function partOf(
  limit: number,
  key: string,
  { givers, isGiver }: { readonly givers: readonly ChargedScopes[]; readonly isGiver: boolean },
): number {
  if (limit === Number.POSITIVE_INFINITY) return limit;
  let rest = limit;
  let kept = 0;
  for (const charged of givers) {
    kept = Math.floor(Math.max(0, rest - (charged[key] ?? 0)) / 2);
    rest -= kept;
  }
  return isGiver ? kept : rest;
}

function chargedIn({ uses }: LimitsState): ChargedScopes {
  return Object.fromEntries(
    uses.map(({ scope, amounts, debt }) => [
      keyOf(scope),
      amounts.reduce((sum, amount) => sum + amount, debt),
    ]),
  );
}

/** Caps and guarantees of one id count separately. */
function keyOf({ id, unit, seconds }: NamedScope): string {
  return `${unit} ${seconds === 0 ? "cap" : "guarantee"} ${id}`;
}
