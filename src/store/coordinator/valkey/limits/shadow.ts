import type { Clock } from "../../../../domain/clock.ts";
import type { CountedRequest, LimitScope } from "../../../../domain/limits/limit-scope.ts";
import type { NamedScope, ScopeUse } from "../../../../domain/limits/scope-use.ts";
import type { CountDecision, LimitDecision, LimitRequest } from "../../../store.ts";
import { createMemoryLimitStore, type MemoryLimitStore } from "../../memory/limit-store.ts";
import { refusedByShare, stateOfWhole } from "../../memory/share-of-limits.ts";
import { tagOf } from "./scope-parameters.ts";

export interface ShadowOptions {
  readonly clock: Clock;
  readonly random: () => number;
  readonly reservationTtlMs: number;
  readonly scopeLimit: number;
  /** How many workers share the limits. */
  readonly workers: () => number;
}

/**
 * All that this worker has admitted, counted in its own time. When Valkey does not decide, the
 * worker grants what is left of its share of each limit.
 */
export class Shadow {
  readonly #workers: () => number;
  readonly #limits: MemoryLimitStore;

  constructor({ workers, ...options }: ShadowOptions) {
    this.#workers = workers;
    this.#limits = createMemoryLimitStore(options);
  }

  /** The slot of the last step, in this process's time. */
  get slot(): number {
    return this.#limits.slot;
  }

  /** Counts a request that Valkey has admitted; returns its slot here. */
  counted(scopes: readonly LimitScope[]): number {
    this.#limits.count(withoutLimits(scopes));
    return this.#limits.slot;
  }

  /** Charges a call that Valkey has admitted. */
  admitted(request: LimitRequest): void {
    this.#limits.acquire({ ...request, scopes: withoutLimits(request.scopes) });
  }

  count(scopes: readonly LimitScope[]): CountDecision {
    const decision = this.#limits.count(this.#shareOf(scopes));
    if (!decision.isAdmitted) return refusedByShare(named(decision), { scopes, tokens: 0 });
    return { isAdmitted: true, counted: { scopes, slot: decision.counted.slot } };
  }

  acquire(request: LimitRequest): LimitDecision {
    const { scopes } = request;
    const decision = this.#limits.acquire({ ...request, scopes: this.#shareOf(scopes) });
    if (!decision.isAdmitted) return refusedByShare(named(decision), request);
    return { isAdmitted: true, state: stateOfWhole(decision.state, scopes, scopes[0]?.id) };
  }

  uncount({ scopes, slot }: CountedRequest): void {
    this.#limits.uncount({ scopes: withoutLimits(scopes), slot });
  }

  use(callId: string, tokens: number): void {
    this.#limits.use(callId, tokens);
  }

  settle(callId: string, tokens: number): void {
    this.#limits.settle(callId, tokens);
  }

  /** What this worker has used of a window, if anything. */
  usedIn(tag: string, name: NamedScope): ScopeUse | undefined {
    const [use] = this.#limits.usedIn([{ ...name, id: shadowId(tag, name.id) }]);
    return use;
  }

  #shareOf(scopes: readonly LimitScope[]): readonly LimitScope[] {
    const workers = Math.max(1, this.#workers());
    return scopes.map((scope) => ({
      ...scope,
      id: shadowId(tagOf(scope), scope.id),
      limit: scope.limit < 1 ? scope.limit : Math.max(1, Math.floor(scope.limit / workers)),
    }));
  }
}

/** The scopes of a call are the same list from its count to its settlement. */
const known = new WeakMap<readonly LimitScope[], readonly LimitScope[]>();

function withoutLimits(scopes: readonly LimitScope[]): readonly LimitScope[] {
  let unlimited = known.get(scopes);
  if (unlimited === undefined) known.set(scopes, (unlimited = scopes.map(withoutLimit)));
  return unlimited;
}

/** What was admitted elsewhere is charged whatever the limit. */
function withoutLimit(scope: LimitScope): LimitScope {
  const { id, overrunFactor: _, ...rest } = scope;
  return { ...rest, id: shadowId(tagOf(scope), id), limit: Infinity };
}

const separator = "\n";

/** Two accounts may have scopes of the same id. */
function shadowId(tag: string, id: string): string {
  return tag + separator + id;
}

function named<Refusal extends { readonly scopeId: string }>(refusal: Refusal): Refusal {
  return { ...refusal, scopeId: refusal.scopeId.slice(refusal.scopeId.indexOf(separator) + 1) };
}
