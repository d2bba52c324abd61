import type { CapacityClass } from "../../domain/usage/usage.ts";
import type { PoolLoad, PoolName } from "../../domain/limits/capacity.ts";
import type { GateFacts } from "../../domain/live-facts.ts";
import { Wait } from "../../domain/waiting/gate.ts";
import type { ConcurrencyLimit } from "../../routing/health/concurrency-limit.ts";
import type { Upstream } from "../../snapshot/snapshot.ts";
import {
  busy,
  type BusyPool,
  type CapacityGate,
  type ConfiguredPlaces,
  type Draining,
  type EnterResult,
  type PlaceAsk,
  type PlaceCandidate,
  type UpstreamBounds,
} from "./place.ts";
import type { GateServices } from "./pool-bounds.ts";
import { HeldPlace, PlaceTurn, PoolGate, type PoolGateOptions, type Spot } from "./pool-gate.ts";
import type { SharedSlots } from "./shared/shared-slots.ts";
import type { UpstreamSlots } from "./shared/upstream-slots.ts";
import { type RequestTerms, UpstreamPlaces, UpstreamRequests } from "./upstream-places.ts";

export interface CapacityOptions extends GateServices {
  /** The concurrency limit of a target; a new one only for a new snapshot. */
  readonly limitOf: (targetId: string) => ConcurrencyLimit;
  /** What this process may use of bounds that several processes share; default: all. */
  readonly shared?: SharedSlots | undefined;
}

type Entered = EnterResult<HeldPlace>;
type NamedUpstream = UpstreamBounds & Pick<Upstream, "name">;

interface UpstreamEntry {
  readonly places: UpstreamPlaces;
  /** Where several processes share them. */
  readonly slots: UpstreamSlots | undefined;
  /** For answers that are drained after their callers have left. */
  readonly readingOn: UpstreamPlaces;
  /** The gate of its targets without a pool; undefined until one is tried. */
  gate: PoolGate | undefined;
  draining: Draining | undefined;
}

const none: readonly BusyPool[] = [];

/**
 * The places of all pools and upstreams, for the process: a reload changes bounds and cuts no call.
 * Call `follow` for each new snapshot.
 */
export class Capacity implements CapacityGate {
  readonly #options: CapacityOptions;
  readonly #pools = new Map<string, PoolGate>();
  readonly #upstreams = new Map<string, UpstreamEntry>();
  /** By target; anew for each snapshot. */
  #spots = new WeakMap<PlaceCandidate["target"], Spot>();
  #newest: ConfiguredPlaces | undefined;

  constructor(options: CapacityOptions) {
    this.#options = options;
  }

  enter(ask: PlaceAsk): Entered | Promise<Entered> {
    return this.#try(ask, none);
  }

  requestPlaces(upstream: NamedUpstream, { isBound }: RequestTerms): UpstreamRequests {
    return new UpstreamRequests(this.at(upstream).places, isBound, 0);
  }

  draining(upstream: NamedUpstream): Draining | undefined {
    const { drain } = upstream;
    if (drain === undefined) return undefined;
    const entry = this.at(upstream);
    const { timeoutMs, limit } = drain;
    entry.readingOn.limit = Math.floor(limit / this.#processes);
    if (entry.draining?.timeoutMs !== timeoutMs) {
      entry.draining = { timeoutMs, places: entry.readingOn };
    }
    return entry.draining;
  }

  /** Sets the bounds of this snapshot, and removes unused pools and upstreams that it lacks. */
  follow(snapshot: ConfiguredPlaces): void {
    this.#newest = snapshot;
    this.#spots = new WeakMap();
    for (const [name, pool] of this.#pools) {
      const source = snapshot.pools.get(name);
      if (source !== undefined) pool.source = source;
      else if (pool.isIdle) this.#pools.delete(name);
    }
    // Raising a limit serves waiting calls at once, so all limits that become lower are set first.
    for (const [name, { places }] of this.#upstreams) {
      places.limit = Math.min(places.limit, snapshot.upstreams.get(name)?.maxInFlight ?? Infinity);
    }
    for (const [name, entry] of this.#upstreams) {
      const upstream = snapshot.upstreams.get(name);
      if (upstream !== undefined) this.#setLimit(entry, upstream);
      else if (isUnused(entry)) this.#upstreams.delete(name);
    }
    for (const { gate } of this.#upstreams.values()) gate?.gate.serve();
    this.unitsChanged();
  }

  /** Serves waiting calls at once after units of a pool were sold or given back. */
  unitsChanged(): void {
    for (const { gate } of this.#pools.values()) gate.serve();
  }

  views(): readonly PoolLoad[] {
    const views: PoolLoad[] = [];
    for (const [name, pool] of this.#pools) views.push(viewOf({ kind: "pool", name }, pool));
    for (const [name, { gate }] of this.#upstreams) {
      if (gate !== undefined) views.push(viewOf({ kind: "upstream", name }, gate));
    }
    return views;
  }

  /** All configured pools and upstreams. */
  facts(): readonly GateFacts[] {
    if (this.#newest === undefined) return [];
    const { pools, upstreams } = this.#newest;
    const ofPools = Array.from(pools, ([name, { maxInFlight }]): GateFacts => {
      const { places, gate } = this.#pools.get(name) ?? {};
      const counts = { inFlight: places?.all ?? 0, waiting: gate?.size ?? 0 };
      return { kind: "pool", name, ...counts, bound: maxInFlight };
    });
    const ofUpstreams = Array.from(upstreams, ([name, { maxInFlight }]): GateFacts => {
      const { places, gate } = this.#upstreams.get(name) ?? {};
      const counts = { inFlight: places?.count ?? 0, waiting: gate?.gate.size ?? 0 };
      const bound = maxInFlight === Infinity ? undefined : maxInFlight;
      return { kind: "upstream", name, ...counts, bound };
    });
    return [...ofPools, ...ofUpstreams];
  }

  at(called: NamedUpstream): UpstreamEntry {
    return this.#upstreams.get(called.name) ?? this.#addUpstream(called.name, called);
  }

  /** Tries the candidates after those in `refused`. */
  #try(ask: PlaceAsk, refused: readonly BusyPool[]): Entered | Promise<Entered> {
    const { candidates, request, snapshot } = ask;
    const candidate = candidates[refused.length];
    if (candidate === undefined) return ask.waitMs > 0 ? this.#wait(ask, refused) : { refused };
    const { target } = candidate;
    const spot = this.#spotOf(target, snapshot);
    const tried = spot.pool.tryEnter(request, spot);
    if (tried instanceof Promise) return tried.then((late) => this.#next(ask, refused, late));
    const recalled =
      tried instanceof HeldPlace ? undefined : this.#options.shared?.recall(request, target, tried);
    if (recalled !== undefined) return recalled.then(() => this.#try(ask, refused));
    return this.#next(ask, refused, tried);
  }

  #next(ask: PlaceAsk, refused: readonly BusyPool[], tried: HeldPlace | BusyPool) {
    if (tried instanceof HeldPlace) return { place: tried, at: refused.length, refused };
    return this.#try(ask, [...refused, tried]);
  }

  /** Waits in the queues of all pools where a retry may succeed. */
  #wait(ask: PlaceAsk, refused: readonly BusyPool[]): Entered | Promise<Entered> {
    const { request, candidates, snapshot, signal, waitMs } = ask;
    if (signal.aborted) return { refused: [busy("left", 0)] };
    const turns = new Map<PoolGate, PlaceTurn>();
    const end = Promise.withResolvers<Entered>();
    for (const [at, { target }] of candidates.entries()) {
      if (refused[at]?.retryAfterMs === Infinity) continue;
      const spot = this.#spotOf(target, snapshot);
      const turn = turns.get(spot.pool) ?? new PlaceTurn(spot.pool, request, end);
      turns.set(spot.pool, turn);
      if (!turn.spots.has(spot)) turn.spots.set(spot, at);
    }
    if (turns.size === 0) return { refused };
    Wait.begin([...turns.values()], { clock: this.#options.clock, signal, waitMs });
    return end.promise;
  }

  #spotOf(target: PlaceCandidate["target"], snapshot: ConfiguredPlaces): Spot {
    const known = this.#spots.get(target);
    if (known !== undefined) return known;
    if (this.#newest === undefined) this.follow(snapshot);
    const { upstream: name } = target;
    const upstream =
      this.#upstreams.get(name) ?? this.#addUpstream(name, snapshot.upstreams.get(name));
    const pool = this.#poolAt(target.pool, snapshot) ?? this.#poolOf(name, upstream);
    const spot = { pool, upstream: upstream.places, target: this.#options.limitOf(target.id) };
    this.#spots.set(target, spot);
    return spot;
  }

  #poolAt(name: string | undefined, snapshot: ConfiguredPlaces): PoolGate | undefined {
    if (name === undefined) return undefined;
    const known = this.#pools.get(name);
    if (known !== undefined) return known;
    // A call keeps the snapshot it began with, which may have pools that the newest lacks.
    const source = this.#newest?.pools.get(name) ?? snapshot.pools.get(name);
    if (source === undefined) return undefined;
    const slots = this.#options.shared?.pool(name);
    const pool = this.#newGate({ kind: "pool", name }, { source, slots });
    if (slots !== undefined) slots.pool = pool;
    this.#pools.set(name, pool);
    return pool;
  }

  /** The gate of the targets of an upstream that name no pool. */
  #poolOf(name: string, entry: UpstreamEntry): PoolGate {
    const pool = (entry.gate ??= this.#newGate({ kind: "upstream", name }));
    if (entry.slots !== undefined) entry.slots.pool = pool;
    return pool;
  }

  #addUpstream(name: string, called: UpstreamBounds | undefined): UpstreamEntry {
    const slots = this.#options.shared?.upstream(name);
    const places = new UpstreamPlaces(0, slots);
    if (slots !== undefined) slots.places = places;
    const entry: UpstreamEntry = {
      places,
      slots,
      readingOn: new UpstreamPlaces(0),
      gate: undefined,
      draining: undefined,
    };
    const upstream = this.#newest?.upstreams.get(name) ?? called;
    if (upstream !== undefined) this.#setLimit(entry, upstream);
    this.#upstreams.set(name, entry);
    return entry;
  }

  #setLimit({ places, slots }: UpstreamEntry, { maxInFlight }: UpstreamBounds): void {
    if (slots === undefined) places.limit = maxInFlight;
    else slots.follow(maxInFlight);
  }

  #newGate(place: PoolName, own: Pick<PoolGateOptions, "source" | "slots"> = {}): PoolGate {
    return new PoolGate({ ...this.#options, ...own, place, processes: () => this.#processes });
  }

  get #processes(): number {
    return this.#options.shared?.processes ?? 1;
  }
}

function isUnused({ gate, places, readingOn }: UpstreamEntry): boolean {
  return gate?.isIdle !== false && places.count === 0 && readingOn.count === 0;
}

function viewOf(place: PoolName, pool: PoolGate): PoolLoad {
  const count = (of: (capacityClass: CapacityClass) => number) => ({
    provisioned: of("provisioned"),
    spillover: of("spillover"),
    "on-demand": of("on-demand"),
  });
  return {
    ...place,
    inFlight: count((capacityClass) => pool.places.of(capacityClass)),
    queued: count((capacityClass) => pool.gate.count(capacityClass)),
  };
}
