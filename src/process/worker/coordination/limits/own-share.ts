import type { Clock } from "../../../../domain/clock.ts";
import type { CountedRequest, LimitScope } from "../../../../domain/limits/limit-scope.ts";
import {
  createMemoryLimitStore,
  type MemoryLimitStore,
  type MemoryLimitStoreOptions,
} from "../../../../store/coordinator/memory/limit-store.ts";
import {
  refusedByShare,
  stateOfWhole,
} from "../../../../store/coordinator/memory/share-of-limits.ts";
import type { CountDecision, LimitDecision, LimitRequest } from "../../../../store/store.ts";
import { useToWire, type WireUse } from "../../../link/limit-use-wire.ts";
import type { SharedUse } from "./shared-use.ts";

/**
 * The limits of a worker while control is unavailable: an equal part of what is left of each limit.
 * What was granted before can only shrink with time, so all parts together never exceed the limit.
 */
export class OwnShare {
  readonly #shared: SharedUse | undefined;
  readonly #limits: MemoryLimitStore;

  /** `shared`: what all workers have been granted; undefined: this worker knows nothing. */
  constructor(shared: SharedUse | undefined, options: MemoryLimitStoreOptions) {
    this.#shared = shared;
    // Its slots must stay comparable, so later corrections of the common time are ignored.
    const aheadMs = shared?.aheadMs ?? 0;
    const { clock } = options;
    const common: Clock = {
      now: () => clock.now(),
      monotonic: () => clock.monotonic() - aheadMs,
      schedule: (run, delayMs) => clock.schedule(run, delayMs),
    };
    this.#limits = createMemoryLimitStore({ ...options, clock: common });
  }

  /** The slot of the last decision. */
  get slot(): number {
    return this.#limits.slot;
  }

  count(scopes: readonly LimitScope[]): CountDecision {
    const decision = this.#limits.count(this.#partOf(scopes));
    if (!decision.isAdmitted) return refusedByShare(decision, { scopes, tokens: 0 });
    return { isAdmitted: true, counted: { scopes, slot: decision.counted.slot } };
  }

  uncount({ scopes, slot }: CountedRequest): void {
    this.#limits.uncount({ scopes: this.#partOf(scopes), slot });
  }

  acquire(request: LimitRequest): LimitDecision {
    const { scopes } = request;
    const decision = this.#limits.acquire({ ...request, scopes: this.#partOf(scopes) });
    if (!decision.isAdmitted) return refusedByShare(decision, request);
    const [first] = scopes;
    return { isAdmitted: true, state: stateOfWhole(decision.state, scopes, first?.id) };
  }

  use(callId: string, tokens: number): void {
    this.#limits.use(callId, tokens);
  }

  settle(callId: string, tokens: number): void {
    this.#limits.settle(callId, tokens);
  }

  held(): readonly WireUse[] {
    return Array.from(this.#limits.held(), useToWire);
  }

  #partOf(scopes: readonly LimitScope[]): readonly LimitScope[] {
    return scopes.map((scope) => ({ ...scope, limit: this.#part(scope) }));
  }

  #part(scope: LimitScope): number {
    if (this.#shared === undefined) return 0;
    const left = scope.limit - this.#shared.charged(scope);
    return Math.max(0, Math.floor(left / this.#shared.workers));
  }
}
