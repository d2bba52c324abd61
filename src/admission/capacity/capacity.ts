import type { Pool } from "../../domain/limits/capacity.ts";
import type { Clock } from "../../domain/clock.ts";
import type { CapacityClass } from "../../domain/usage/usage.ts";
import type { TokenLimits } from "../../store/store.ts";
import type { Candidate } from "../../routing/candidates.ts";
import type { Snapshot, Upstream } from "../../snapshot/snapshot.ts";
import type { CapacityGate, Draining, EnterResult, PlaceRequest, PlaceWait } from "./place.ts";
import { boundsOfPool, boundsOfUpstream, type PoolBounds, type PoolUnits } from "./pool-bounds.ts";
import { PoolGate } from "./pool-gate.ts";
import { RequestPlaces, type RequestTerms } from "../places/request-places.ts";
import { UpstreamPlaces } from "../places/upstream-places.ts";
import type { Waited } from "./waiter.ts";

export interface CapacityOptions {
  readonly clock: Clock;
  readonly limits: TokenLimits;
  readonly settings: () => { readonly queueLimit: number };
  readonly units: PoolUnits;
  /** A wait in the queue of a pool, or of an upstream, has ended. Must not throw. */
  readonly onWaited?: (place: PoolName, waited: Waited) => void;
}

/** A configured pool, or the targets of an upstream that name none. */
export interface PoolName {
  readonly kind: "pool" | "upstream";
  readonly name: string;
}

export interface PoolView extends PoolName {
  readonly inFlight: Readonly<Record<CapacityClass, number>>;
  readonly queued: Readonly<Record<CapacityClass, number>>;
}

type Where = Pick<Candidate, "target" | "upstream">;

/** A gate and the newest configuration of its pool. */
interface PoolEntry {
  readonly gate: PoolGate;
  source: Pool;
}

interface UpstreamEntry {
  readonly places: UpstreamPlaces;
  /** For answers that are drained after their callers have left. */
  readonly readingOn: UpstreamPlaces;
  /** The gate of its targets without a pool; undefined until one is tried. */
  gate: PoolGate | undefined;
  draining: Draining | undefined;
}

/**
 * The places of all pools and upstreams, for the process: a reload changes bounds and cuts no call.
 * Call `follow` for each new snapshot.
 */
export class Capacity implements CapacityGate {
  readonly #options: CapacityOptions;
  readonly #pools = new Map<string, PoolEntry>();
  readonly #upstreams = new Map<string, UpstreamEntry>();
  #newest: Snapshot | undefined;

  constructor(options: CapacityOptions) {
    this.#options = options;
  }

  /** A place at once, or none. A promise only if the limit store returns one. */
  tryEnter(
    where: Where,
    request: PlaceRequest,
    snapshot: Snapshot,
  ): EnterResult | Promise<EnterResult> {
    const entry = this.at(where.upstream, snapshot);
    return this.#gateOf(where, snapshot, entry).tryEnter(request, entry.places);
  }

  /** Waits for a place in the fair queue of the pool. */
  enter(where: Where, wait: PlaceWait): Promise<EnterResult> {
    const entry = this.at(where.upstream, wait.snapshot);
    return this.#gateOf(where, wait.snapshot, entry).enter(wait, entry.places);
  }

  requestPlaces(upstream: Upstream, { isBound }: RequestTerms): RequestPlaces {
    return new RequestPlaces(this.at(upstream).places, isBound, 0);
  }

  draining(upstream: Upstream): Draining | undefined {
    const { drain } = upstream;
    if (drain === undefined) return undefined;
    const entry = this.at(upstream);
    const { timeoutMs } = drain;
    if (entry.draining?.timeoutMs !== timeoutMs) {
      entry.draining = { timeoutMs, places: entry.readingOn };
    }
    return entry.draining;
  }

  /** Sets the bounds of this snapshot, and removes unused pools and upstreams that it lacks. */
  follow(snapshot: Snapshot): void {
    this.#newest = snapshot;
    for (const [name, entry] of this.#upstreams) {
      const upstream = snapshot.upstreams.get(name);
      if (upstream !== undefined) setLimits(entry, upstream);
      else if (isUnused(entry)) this.#upstreams.delete(name);
    }
    for (const [name, entry] of this.#pools) {
      const pool = snapshot.pools.get(name);
      if (pool !== undefined) entry.source = pool;
      else if (entry.gate.isIdle) this.#pools.delete(name);
    }
    for (const { gate } of this.#upstreams.values()) gate?.serve();
    for (const { gate } of this.#pools.values()) gate.serve();
  }

  /** Serves waiting calls at once after units of a pool were sold or given back. */
  unitsChanged(): void {
    for (const { gate } of this.#pools.values()) gate.serve();
  }

  views(): readonly PoolView[] {
    return [
      ...[...this.#pools].map(([name, { gate }]) => viewOf({ kind: "pool", name }, gate)),
      ...[...this.#upstreams].flatMap(([name, { gate }]) =>
        gate === undefined ? [] : [viewOf({ kind: "upstream", name }, gate)],
      ),
    ];
  }

  /** The state of an upstream. */
  at(called: Upstream, snapshot?: Snapshot): UpstreamEntry {
    if (this.#newest === undefined && snapshot !== undefined) this.follow(snapshot);
    return this.#upstreams.get(called.name) ?? this.#addUpstream(called);
  }

  #gateOf({ target, upstream }: Where, snapshot: Snapshot, entry: UpstreamEntry): PoolGate {
    if (target.pool !== undefined) {
      const known = this.#pools.get(target.pool);
      if (known !== undefined) return known.gate;
      // A call keeps the snapshot it began with, which may have pools that the newest lacks.
      const pool = this.#newest?.pools.get(target.pool) ?? snapshot.pools.get(target.pool);
      if (pool !== undefined) return this.#addPool(pool);
    }
    const { name } = upstream;
    return (entry.gate ??= this.#newGate({ kind: "upstream", name }, () => boundsOfUpstream));
  }

  #addPool(pool: Pool): PoolGate {
    const { name } = pool;
    const { units } = this.#options;
    const entry: PoolEntry = {
      source: pool,
      gate: this.#newGate({ kind: "pool", name }, () => boundsOfPool(entry.source, units)),
    };
    this.#pools.set(name, entry);
    return entry.gate;
  }

  #addUpstream(called: Upstream): UpstreamEntry {
    const { name } = called;
    const entry = {
      places: new UpstreamPlaces(0),
      readingOn: new UpstreamPlaces(0),
      gate: undefined,
      draining: undefined,
    };
    setLimits(entry, this.#newest?.upstreams.get(name) ?? called);
    this.#upstreams.set(name, entry);
    return entry;
  }

  #newGate(place: PoolName, bounds: () => PoolBounds): PoolGate {
    const { clock, limits, settings, units, onWaited } = this.#options;
    return new PoolGate({
      clock,
      limits,
      scopeId: `${place.kind}:${place.name}`,
      bounds,
      unitsOf: (keyId) => (place.kind === "pool" ? units.unitsOf(place.name, keyId) : 0),
      passesUpstreams: place.kind === "pool",
      queueLimit: () => settings().queueLimit,
      onWaited: (waited) => onWaited?.(place, waited),
    });
  }
}

function setLimits({ places, readingOn }: UpstreamEntry, upstream: Upstream): void {
  places.limit = upstream.maxInFlight;
  readingOn.limit = upstream.drain?.limit ?? 0;
}

function isUnused({ gate, places, readingOn }: UpstreamEntry): boolean {
  return gate?.isIdle !== false && places.count === 0 && readingOn.count === 0;
}

function viewOf(place: PoolName, gate: PoolGate): PoolView {
  const count = (of: (capacityClass: CapacityClass) => number) => ({
    provisioned: of("provisioned"),
    spillover: of("spillover"),
    "on-demand": of("on-demand"),
  });
  return {
    ...place,
    inFlight: count((capacityClass) => gate.held(capacityClass)),
    queued: count((capacityClass) => gate.waiting(capacityClass)),
  };
}
