import type { Clock } from "../../domain/clock.ts";
import type { Pool } from "../../domain/limits/capacity.ts";
import type { ConcurrencyLimit } from "../../routing/health/concurrency-limit.ts";
import type { TokenLimits } from "../../store/limits/limit-store.ts";
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
  type Spot,
  type UpstreamBounds,
} from "./place.ts";
import type { HeldPlace } from "./held-place.ts";
import {
  boundsOfPool,
  boundsOfUpstream,
  type PoolBounds,
  type PoolName,
  type PoolUnits,
} from "./pool-bounds.ts";
import { PoolGate } from "./pool-gate.ts";
import { RequestPlaces, type RequestTerms } from "./request-places.ts";
import type { SharedSlots, SlotUser } from "./shared/shared-slots.ts";
import { UpstreamPlaces } from "./upstream-places.ts";
import { type Waited, Waiter } from "./waiter.ts";
import type { CapacityClass } from "../../domain/usage/usage.ts";
import type { GateUse } from "./pool-places.ts";

export interface CapacityOptions {
  readonly clock: Clock;
  readonly limits: TokenLimits;
  readonly settings: () => { readonly queueLimit: number };
  readonly units: PoolUnits;
  /** The concurrency limit of a target. */
  readonly limitOf: (targetId: string) => ConcurrencyLimit;
  /** A wait in the queue of a pool, or of an upstream, has ended. Must not throw. */
  readonly onWaited?: (place: PoolName, waited: Waited) => void;
  /** What this process may use of bounds that several processes share; default: all. */
  readonly shared?: SharedSlots | undefined;
}

export interface PoolView extends PoolName {
  readonly inFlight: Readonly<Record<CapacityClass, number>>;
  readonly queued: Readonly<Record<CapacityClass, number>>;
}

type Entered = EnterResult<HeldPlace>;
type NamedUpstream = UpstreamBounds & Pick<Upstream, "name">;

/** A gate and the newest configuration of its pool. */
interface PoolEntry {
  readonly gate: PoolGate;
  source: Pool;
}

interface UpstreamEntry {
  readonly places: UpstreamPlaces;
  /** For answers that are drained after their callers have left. */
  readonly readingOn: UpstreamPlaces;
  /** The newest configuration. */
  bounds: UpstreamBounds | undefined;
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
  #newest: ConfiguredPlaces | undefined;

  constructor(options: CapacityOptions) {
    this.#options = options;
    options.shared?.attach(this);
  }

  enter(ask: PlaceAsk): Entered | Promise<Entered> {
    return this.#try(ask, []);
  }

  requestPlaces(upstream: NamedUpstream, { isBound }: RequestTerms): RequestPlaces {
    return new RequestPlaces(this.at(upstream).places, isBound, 0);
  }

  draining(upstream: NamedUpstream): Draining | undefined {
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
  follow(snapshot: ConfiguredPlaces): void {
    this.#newest = snapshot;
    for (const [name, entry] of this.#pools) {
      const pool = snapshot.pools.get(name);
      if (pool !== undefined) entry.source = pool;
      else if (isIdle(entry.gate)) this.#pools.delete(name);
    }
    // Raising a limit serves waiting calls at once, so all limits that become lower are set first.
    for (const [name, { places }] of this.#upstreams) {
      places.limit = Math.min(places.limit, snapshot.upstreams.get(name)?.maxInFlight ?? Infinity);
    }
    for (const [name, entry] of this.#upstreams) {
      const upstream = snapshot.upstreams.get(name);
      if (upstream !== undefined) this.#setLimits(name, entry, upstream);
      else if (isUnused(entry)) this.#upstreams.delete(name);
    }
    for (const { gate } of this.#upstreams.values()) gate?.serve();
    for (const { gate } of this.#pools.values()) gate.serve();
  }

  /** Serves waiting calls at once after units of a pool were sold or given back. */
  unitsChanged(): void {
    for (const { gate } of this.#pools.values()) gate.serve();
  }

  /** Serves waiting calls after the part of this process has changed. */
  partChanged({ kind, name }: PoolName): void {
    const entry = kind === "pool" ? this.#pools.get(name) : this.#upstreams.get(name);
    if (entry === undefined) return;
    if ("bounds" in entry && entry.bounds !== undefined) {
      this.#setLimits(name, entry, entry.bounds);
    }
    entry.gate?.serve();
  }

  /** What calls of this process hold and wait for. */
  partUse({ kind, name }: PoolName): ReturnType<SlotUser["partUse"]> {
    if (kind === "pool") return { gate: this.#pools.get(name)?.gate.use, upstream: undefined };
    const { gate, places } = this.#upstreams.get(name) ?? {};
    return { gate: gate?.use, upstream: places };
  }

  views(): readonly PoolView[] {
    return [
      ...[...this.#pools].map(([name, { gate }]) => viewOf({ kind: "pool", name }, gate.use)),
      ...[...this.#upstreams].flatMap(([name, { gate }]) =>
        gate === undefined ? [] : [viewOf({ kind: "upstream", name }, gate.use)],
      ),
    ];
  }

  /** The state of an upstream. */
  at(called: NamedUpstream): UpstreamEntry {
    return this.#upstreams.get(called.name) ?? this.#addUpstream(called.name, called);
  }

  /** Tries the candidates after those in `refused`; `result` is that of the next one, if known. */
  #try(
    ask: PlaceAsk,
    refused: BusyPool[],
    result?: HeldPlace | BusyPool,
  ): Entered | Promise<Entered> {
    for (let tried = result; ;) {
      if (tried !== undefined && !("busy" in tried)) {
        return { place: tried, at: refused.length, refused };
      }
      if (tried !== undefined) refused.push(tried);
      const candidate = ask.candidates[refused.length];
      if (candidate === undefined) break;
      const { gate, spot } = this.#find(candidate, refused.length, ask.snapshot);
      const trying = gate.tryEnter(ask.request, spot);
      if (trying instanceof Promise) return trying.then((late) => this.#try(ask, refused, late));
      const recalled =
        "busy" in trying
          ? this.#options.shared?.recall(ask.request, candidate.target, trying)
          : undefined;
      if (recalled !== undefined) return recalled.then(() => this.#try(ask, refused));
      tried = trying;
    }
    return ask.waitMs > 0 ? this.#wait(ask, refused) : { refused };
  }

  /** Waits in the queues of all pools where a retry may succeed. */
  #wait(ask: PlaceAsk, refused: readonly BusyPool[]): Entered | Promise<Entered> {
    if (ask.signal.aborted) return { refused: [busy("left", 0)] };
    const spots = new Map<PoolGate, Spot[]>();
    for (const [at, candidate] of ask.candidates.entries()) {
      if (refused[at]?.retryAfterMs === Infinity) continue;
      const { gate, spot } = this.#find(candidate, at, ask.snapshot);
      spots.set(gate, [...(spots.get(gate) ?? []), spot]);
    }
    if (spots.size === 0) return { refused };
    return new Waiter(ask.request, this.#options.clock).wait(ask, spots);
  }

  #find({ target }: PlaceCandidate, at: number, snapshot: ConfiguredPlaces) {
    if (this.#newest === undefined) this.follow(snapshot);
    const { upstream: name, pool } = target;
    const upstream =
      this.#upstreams.get(name) ?? this.#addUpstream(name, snapshot.upstreams.get(name));
    const gate =
      (pool === undefined ? undefined : this.#poolAt(pool, snapshot)) ??
      (upstream.gate ??= this.#newGate({ kind: "upstream", name }, () => boundsOfUpstream));
    const spot: Spot = { at, upstream: upstream.places, target: this.#options.limitOf(target.id) };
    return { gate, spot };
  }

  #poolAt(name: string, snapshot: ConfiguredPlaces): PoolGate | undefined {
    const known = this.#pools.get(name);
    if (known !== undefined) return known.gate;
    // A call keeps the snapshot it began with, which may have pools that the newest lacks.
    const pool = this.#newest?.pools.get(name) ?? snapshot.pools.get(name);
    return pool && this.#addPool(pool);
  }

  #addPool(pool: Pool): PoolGate {
    const { name } = pool;
    const { units, shared } = this.#options;
    const bounds = (): PoolBounds => {
      const whole = boundsOfPool(entry.source, units);
      return shared?.ofPool(entry.source, whole) ?? whole;
    };
    const entry: PoolEntry = { source: pool, gate: this.#newGate({ kind: "pool", name }, bounds) };
    this.#pools.set(name, entry);
    return entry.gate;
  }

  #addUpstream(name: string, called: UpstreamBounds | undefined): UpstreamEntry {
    const { shared: slots } = this.#options;
    const shared = slots && ({ slots, place: { kind: "upstream", name } } as const);
    const entry: UpstreamEntry = {
      places: new UpstreamPlaces(0, shared),
      readingOn: new UpstreamPlaces(0),
      bounds: undefined,
      gate: undefined,
      draining: undefined,
    };
    const upstream = this.#newest?.upstreams.get(name) ?? called;
    if (upstream !== undefined) this.#setLimits(name, entry, upstream);
    this.#upstreams.set(name, entry);
    return entry;
  }

  #setLimits(name: string, entry: UpstreamEntry, bounds: UpstreamBounds): void {
    const { maxInFlight, drain } = bounds;
    const drained = drain?.limit ?? 0;
    const { shared } = this.#options;
    entry.bounds = bounds;
    entry.readingOn.limit = shared?.ofDraining(drained) ?? drained;
    entry.places.limit = shared?.ofUpstream(name, maxInFlight) ?? maxInFlight;
  }

  #newGate(place: PoolName, bounds: () => PoolBounds): PoolGate {
    const { clock, limits, settings, units, onWaited, shared } = this.#options;
    return new PoolGate({
      clock,
      limits,
      scopeId: `${place.kind}:${place.name}`,
      processes: () => shared?.processes ?? 1,
      bounds,
      unitsOf: (keyId) => (place.kind === "pool" ? units.unitsOf(place.name, keyId) : 0),
      pool: place.kind === "pool" ? place.name : undefined,
      queueLimit: () => settings().queueLimit,
      onWaited: (waited) => onWaited?.(place, waited),
      place,
      shared,
    });
  }
}

function isUnused({ gate, places, readingOn }: UpstreamEntry): boolean {
  return isIdle(gate) && places.count === 0 && readingOn.count === 0;
}

function isIdle(gate: PoolGate | undefined): boolean {
  return gate === undefined || (gate.heldPlaces === 0 && !gate.isWaitedFor);
}

function viewOf(place: PoolName, { places, queue }: GateUse): PoolView {
  const count = (of: (capacityClass: CapacityClass) => number) => ({
    provisioned: of("provisioned"),
    spillover: of("spillover"),
    "on-demand": of("on-demand"),
  });
  return {
    ...place,
    inFlight: count((capacityClass) => places.of(capacityClass)),
    queued: count((capacityClass) => queue.count(capacityClass)),
  };
}
