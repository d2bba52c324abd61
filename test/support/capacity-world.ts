import { drainMicrotasks } from "bun:jsc";
import type { Pool, PoolName, UnitHoldings } from "../../src/domain/limits/capacity.ts";
import type { CapacityClass } from "../../src/domain/usage/usage.ts";
import { Capacity, type CapacityOptions } from "../../src/admission/capacity/capacity.ts";
import type {
  BusyPool,
  EnterResult,
  Place,
  PlaceCandidate,
  PlaceRequest,
  Waited,
} from "../../src/admission/capacity/place.ts";
import { ConcurrencyLimit } from "../../src/routing/health/concurrency-limit.ts";
import type { Snapshot, Upstream } from "../../src/snapshot/snapshot.ts";
import { MemoryLimitStore } from "../../src/store/limits/memory/limit-store.ts";
import type { TokenLimits } from "../../src/store/limits/limit-store.ts";
import { ProcessClock, VirtualTime } from "../simulation/virtual-time.ts";
import { snapshotOf, targetOf, upstreamOf } from "./pipeline-fixtures.ts";

export const plainPool: Pool = {
  name: "shared",
  kind: "shared",
  tokensPerMinute: 100_000,
  maxInFlight: 10,
  onDemandFloorPercent: 20,
  unitTokensPerMinute: 1_000,
};

const plainAccount = "account";
/** Tests of pools are not limited by upstreams. */
const roomy = upstreamOf("up", { maxInFlight: Infinity });

/** What a call got: a place, or why there is none at its first candidate. */
export type AskResult = { readonly place: Place; readonly at: number } | BusyPool;

/** A call that asked for a place: it waits, or has a result. */
export interface Asked {
  readonly request: PlaceRequest;
  readonly askedAt: number;
  /** Undefined while it waits. */
  result: AskResult | undefined;
  endedAt: number | undefined;
  readonly leave: () => void;
}

export interface HowToAsk {
  /**
   * Default: the pool `shared`; `pool@upstream` names the upstream of its target. Several are the
   * candidates, in this order.
   */
  readonly at?: string | readonly string[];
  /** The upstream of the pool's target; default `up`. */
  readonly upstream?: string;
  /** Default 0. */
  readonly waitMs?: number;
  readonly onPlace?: (place: Place) => void;
}

export interface WorldOptions {
  readonly pools?: readonly Pool[];
  readonly upstreams?: readonly Upstream[];
  readonly queueLimit?: number;
  /** Replaces the in-memory store by another one, such as one that answers later. */
  readonly wrap?: (store: TokenLimits, time: VirtualTime) => TokenLimits;
}

/** Pools with a clock that only the test moves. */
export class CapacityWorld {
  readonly time = new VirtualTime();
  readonly clock = new ProcessClock(this.time, { monotonicMs: 70_000, wallMs: 1e12 });
  readonly store = new MemoryLimitStore({
    clock: this.clock,
    random: () => 0,
  });
  readonly capacity: Capacity;
  readonly waits: (PoolName & Waited)[] = [];
  readonly #limits = new Map<string, ConcurrencyLimit>();
  /** Units of keys, by pool. */
  readonly #sold = new Map<string, Map<string, number>>();
  queueLimit: number;
  #snapshot: Snapshot;
  #calls = 0;

  constructor({ pools = [plainPool], upstreams = [], queueLimit = 100, wrap }: WorldOptions = {}) {
    this.queueLimit = queueLimit;
    const options: CapacityOptions = {
      clock: this.clock,
      limits: wrap?.(this.store, this.time) ?? this.store,
      settings: () => ({ queueLimit: this.queueLimit }),
      units: {
        holdings: (pool) => this.#holdings(pool),
        unitsOf: (pool, keyId) => this.soldTo(keyId, pool),
      },
      limitOf: (targetId) => this.limitOf(targetId),
      onWaited: (place, waited) => void this.waits.push({ ...place, ...waited }),
    };
    this.#snapshot = snapshotWith(pools, upstreams);
    this.capacity = new Capacity(options);
    this.#follow();
  }

  get snapshot(): Snapshot {
    return this.#snapshot;
  }

  reload(pools: readonly Pool[], upstreams: readonly Upstream[] = []): void {
    this.#snapshot = snapshotWith(pools, upstreams);
    this.#follow();
  }

  /** The key is named after the account unless another is named. */
  sell(units: number, { key = plainAccount, pool = "shared" } = {}): void {
    const keys = this.#sold.get(pool) ?? new Map<string, number>();
    this.#sold.set(pool, keys.set(key, units));
  }

  soldTo(key: string, pool = "shared"): number {
    return this.#sold.get(pool)?.get(key) ?? 0;
  }

  /**
   * Asks at pools, or with `upstream:<name>` at upstreams, and waits for `waitMs` at most. The key is
   * in the first pool.
   */
  ask(wish: Partial<PlaceRequest> = {}, how: HowToAsk = {}): Asked {
    const { at = "shared", upstream, waitMs = 0, onPlace } = how;
    const candidates = [at].flat().map((each) => this.#candidateAt(each, upstream));
    const request = this.#requestFor(wish, candidates);
    const caller = new AbortController();
    const leave = (): void => caller.abort();
    const askedAt = this.time.now;
    const asked: Asked = { request, askedAt, result: undefined, endedAt: undefined, leave };
    const { signal } = caller;
    const { snapshot } = this;
    const entering = this.capacity.enter({ request, candidates, snapshot, signal, waitMs });
    void Promise.resolve(entering).then((entered) => {
      asked.result = resultOf(entered);
      asked.endedAt = this.time.now;
      if ("place" in entered) onPlace?.(entered.place);
    });
    drainMicrotasks();
    return asked;
  }

  /** Asks for a place without waiting. */
  tryAsk(wish: Partial<PlaceRequest> = {}, at = "shared"): AskResult | Promise<AskResult> {
    const candidates = [this.#candidateAt(at)];
    const request = this.#requestFor(wish, candidates);
    const { signal } = new AbortController();
    const ask = { request, candidates, snapshot: this.#snapshot, signal, waitMs: 0 };
    const entering = this.capacity.enter(ask);
    if (!(entering instanceof Promise)) return resultOf(entering);
    let result: AskResult | undefined;
    const later = entering.then((entered) => (result = resultOf(entered)));
    return result ?? later;
  }

  /** The concurrency limit of a target; there is one target for each pool and upstream. */
  limitOf(targetId: string): ConcurrencyLimit {
    const limit = this.#limits.get(targetId) ?? new ConcurrencyLimit();
    this.#limits.set(targetId, limit);
    return limit;
  }

  /** Attempts under way at a target. */
  inFlightAt(targetId: string): number {
    return this.limitOf(targetId).inFlight;
  }

  pass(durationMs: number): void {
    const untilMs = this.time.now + durationMs;
    this.time.schedule(() => undefined, durationMs);
    this.time.runUntil(() => false, { untilMs, steps: Infinity });
  }

  held(capacityClass: CapacityClass, pool = "shared"): number {
    return this.#viewOf(pool)?.inFlight[capacityClass] ?? 0;
  }

  requestsAt(upstream: string): number {
    return this.capacity.at(upstreamOf(upstream)).places.count;
  }

  queued(capacityClass: CapacityClass, pool = "shared"): number {
    return this.#viewOf(pool)?.queued[capacityClass] ?? 0;
  }

  #follow(): void {
    this.capacity.follow(this.#snapshot);
  }

  /** Each account has one key, of its name. */
  #requestFor(wish: Partial<PlaceRequest>, [first]: readonly PlaceCandidate[]): PlaceRequest {
    this.#calls += 1;
    const { accountId = plainAccount } = wish;
    return {
      callId: `call ${this.#calls}`,
      capacityClass: "on-demand",
      provisionedPool: first?.target.pool,
      accountId,
      keyId: accountId,
      tokens: 100,
      ...wish,
    };
  }

  #holdings(pool: string): UnitHoldings {
    const holdings = new Map<number, number>();
    for (const units of this.#sold.get(pool)?.values() ?? []) {
      if (units > 0) holdings.set(units, (holdings.get(units) ?? 0) + 1);
    }
    return holdings;
  }

  #viewOf(name: string) {
    return this.capacity.views().find((view) => view.name === name);
  }

  #candidateAt(at: string, ofPool = roomy.name): PlaceCandidate {
    const [kind, name = ""] = at.split(":");
    if (kind === "upstream") return { target: targetOf(name) };
    const [pool = "", upstream = ofPool] = at.split("@");
    return { target: targetOf(upstream, { id: `${upstream}/${pool}`, pool }) };
  }
}

function resultOf(entered: EnterResult): AskResult {
  if ("place" in entered) return { place: entered.place, at: entered.at };
  const [refused] = entered.refused;
  if (refused === undefined) throw new Error("refused without a reason");
  return refused;
}

/** The granted place; throws if there is none. */
export function placeOf(asked: AskResult | Asked | Promise<AskResult>): Place {
  const result = "request" in asked ? asked.result : asked;
  if (result !== undefined && "place" in result) return result.place;
  throw new Error(`no place: ${JSON.stringify(result)}`);
}

export function isServed({ result }: Asked): boolean {
  return result !== undefined && "place" in result;
}

function snapshotWith(pools: readonly Pool[], upstreams: readonly Upstream[]): Snapshot {
  return {
    ...snapshotOf(upstreams.length === 0 ? [roomy] : upstreams),
    pools: new Map(pools.map((pool) => [pool.name, pool])),
  };
}
