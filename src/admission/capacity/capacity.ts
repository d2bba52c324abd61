import type { Pool } from "../../domain/limits/capacity.ts";
import type { Clock } from "../../domain/clock.ts";
import type { CapacityClass } from "../../domain/usage/usage.ts";
import type { TokenLimits } from "../../store/store.ts";
import type { Candidate } from "../../routing/candidates.ts";
import type { Snapshot, Upstream } from "../../snapshot/snapshot.ts";
import type { CapacityGate, EnterResult, PlaceRequest, PlaceWait } from "./place.ts";
import { boundsOfPool, boundsOfUpstream, type PoolBounds, type PoolUnits } from "./pool-bounds.ts";
import { PoolGate } from "./pool-gate.ts";
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

/** A gate and what its bounds are read from: the newest that is known of it. */
interface Entry<Source> {
  readonly gate: PoolGate;
  source: Source;
}

/**
 * The places of all pools. One for the process: a reload changes bounds and cuts nobody. Whoever
 * replaces the snapshot says so with `follow`.
 */
export class Capacity implements CapacityGate {
  readonly #options: CapacityOptions;
  readonly #pools = new Map<string, Entry<Pool>>();
  readonly #upstreams = new Map<string, Entry<Upstream>>();
  #newest: Snapshot | undefined;

  constructor(options: CapacityOptions) {
    this.#options = options;
  }

  /** A place at once, or none. A promise only where a limit store answers with one. */
  tryEnter(
    where: Where,
    request: PlaceRequest,
    snapshot: Snapshot,
  ): EnterResult | Promise<EnterResult> {
    return this.#gateOf(where, snapshot).tryEnter(request);
  }

  /** Waits for a place in the fair queue of the pool. */
  enter(where: Where, wait: PlaceWait): Promise<EnterResult> {
    return this.#gateOf(where, wait.snapshot).enter(wait, wait);
  }

  /** From now on the bounds are those of this snapshot. Forgets what it no longer has. */
  follow(snapshot: Snapshot): void {
    this.#newest = snapshot;
    followIn(this.#pools, snapshot.pools);
    followIn(this.#upstreams, snapshot.upstreams);
  }

  /** Lets those who wait in at once after units of a pool were sold or given back. */
  unitsChanged(): void {
    for (const { gate } of this.#pools.values()) gate.serve();
  }

  views(): readonly PoolView[] {
    return [
      ...[...this.#pools].map(([name, { gate }]) => viewOf({ kind: "pool", name }, gate)),
      ...[...this.#upstreams].map(([name, { gate }]) => viewOf({ kind: "upstream", name }, gate)),
    ];
  }

  #gateOf({ target, upstream }: Where, snapshot: Snapshot): PoolGate {
    if (this.#newest === undefined) this.follow(snapshot);
    if (target.pool !== undefined) {
      const known = this.#pools.get(target.pool);
      if (known !== undefined) return known.gate;
      // A call goes on with the snapshot it began with, which may have what the newest has not.
      const pool = this.#newest?.pools.get(target.pool) ?? snapshot.pools.get(target.pool);
      if (pool !== undefined) return this.#addPool(pool);
    }
    const known = this.#upstreams.get(upstream.name);
    return known === undefined ? this.#addUpstream(upstream) : known.gate;
  }

  #addPool(pool: Pool): PoolGate {
    const { name } = pool;
    const { units } = this.#options;
    const entry: Entry<Pool> = {
      source: pool,
      gate: this.#newGate({ kind: "pool", name }, () => boundsOfPool(entry.source, units)),
    };
    this.#pools.set(name, entry);
    return entry.gate;
  }

  #addUpstream(called: Upstream): PoolGate {
    const { name } = called;
    const entry: Entry<Upstream> = {
      source: this.#newest?.upstreams.get(name) ?? called,
      gate: this.#newGate({ kind: "upstream", name }, () => boundsOfUpstream(entry.source)),
    };
    this.#upstreams.set(name, entry);
    return entry.gate;
  }

  #newGate(place: PoolName, bounds: () => PoolBounds): PoolGate {
    const { clock, limits, settings, units, onWaited } = this.#options;
    return new PoolGate({
      clock,
      limits,
      scopeId: `${place.kind}:${place.name}`,
      bounds,
      unitsOf: (keyId) => (place.kind === "pool" ? units.unitsOf(place.name, keyId) : 0),
      queueLimit: () => settings().queueLimit,
      onWaited: (waited) => onWaited?.(place, waited),
    });
  }
}

function followIn<Source>(
  entries: Map<string, Entry<Source>>,
  newest: ReadonlyMap<string, Source>,
): void {
  for (const [name, entry] of entries) {
    const source = newest.get(name);
    if (source === undefined && entry.gate.isIdle) entries.delete(name);
    if (source === undefined) continue;
    entry.source = source;
    entry.gate.serve();
  }
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
