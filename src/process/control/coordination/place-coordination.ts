import { Capacity, type CapacityOptions } from "../../../admission/capacity/capacity.ts";
import type { ConfiguredPlaces } from "../../../admission/capacity/place.ts";
import type { Clock } from "../../../domain/clock.ts";
import type { RoutingSettings } from "../../../domain/routing-settings.ts";
import { ConcurrencyLimit } from "../../../routing/health/concurrency-limit.ts";
import type { WireLent } from "../../link/place-wire.ts";
import { LentPlaces } from "./lent-places.ts";
import { RoutingDesk } from "./routing-desk.ts";
import { PlaceDesk, type PlaceDeskOptions } from "./place-desk.ts";

export interface PlaceCoordinationOptions extends Omit<CapacityOptions, "settings" | "limitOf"> {
  readonly clock: Clock;
  readonly config: PlaceConfig;
  readonly workers: number;
}

/** A worker that has connected. */
export interface PlaceWorker extends Pick<PlaceDeskOptions, "when"> {
  readonly tellLent: (lent: readonly WireLent[]) => void;
}

export interface PlaceConfig extends ConfiguredPlaces {
  readonly routing: Pick<RoutingSettings, "queueLimit" | "retryBudgetPercent" | "retryFloor">;
}

/** The places that all workers share. */
export class PlaceCoordination {
  readonly capacity: Capacity;
  /** What attempts of all workers show. */
  readonly routing: RoutingDesk;
  readonly #clock: Clock;
  readonly #limits = new Map<string, ConcurrencyLimit>();
  /** Calls keep the configuration they began with, so earlier pools and upstreams stay known. */
  readonly #places = {
    pools: new Map<string, MapValue<ConfiguredPlaces["pools"]>>(),
    upstreams: new Map<string, MapValue<ConfiguredPlaces["upstreams"]>>(),
  };
  readonly #lent: { readonly pools: LentPlaces; readonly upstreams: LentPlaces };
  readonly #workers = new Set<PlaceWorker>();
  #config: PlaceConfig;
  #desks = 0;

  constructor(options: PlaceCoordinationOptions) {
    const { config, clock } = options;
    this.#clock = clock;
    this.#config = config;
    this.capacity = new Capacity({
      ...options,
      settings: () => this.#config.routing,
      limitOf: (targetId) => this.limitOf(targetId),
    });
    this.routing = new RoutingDesk({
      clock,
      settings: () => this.#config.routing,
      limitOf: (targetId) => this.limitOf(targetId),
    });
    const { workers } = options;
    this.#lent = {
      pools: new LentPlaces({
        workers,
        limitOf: (name) => this.#places.pools.get(name)?.maxInFlight ?? Infinity,
        onChanged: (name, lent) => this.#tell([["pool", name, lent]]),
      }),
      upstreams: new LentPlaces({
        workers,
        limitOf: (name) => this.#places.upstreams.get(name)?.maxInFlight ?? Infinity,
        onChanged: (name, lent) => this.#tell([["upstream", name, lent]]),
      }),
    };
    this.follow(config);
  }

  follow(config: PlaceConfig): void {
    this.#config = config;
    for (const [name, pool] of config.pools) this.#places.pools.set(name, pool);
    for (const [name, upstream] of config.upstreams) this.#places.upstreams.set(name, upstream);
    this.capacity.follow(config);
  }

  /** The concurrency limit of a target. */
  limitOf(targetId: string): ConcurrencyLimit {
    let limit = this.#limits.get(targetId);
    if (limit === undefined) {
      limit = new ConcurrencyLimit();
      this.#limits.set(targetId, limit);
    }
    return limit;
  }

  /** For a worker that has connected. */
  newDesk(worker: PlaceWorker): PlaceDesk {
    this.#desks += 1;
    const { pools, upstreams } = this.#lent;
    return new PlaceDesk({
      name: `worker-${this.#desks}`,
      capacity: this.capacity,
      places: this.#places,
      clock: this.#clock,
      when: worker.when,
      counts: { pools: pools.ofWorker(), upstreams: upstreams.ofWorker() },
      onHeld: () => this.#listen(worker),
      onEnd: () => void this.#workers.delete(worker),
    });
  }

  /** Tells the worker what is lent, now and whenever it changes. */
  #listen(worker: PlaceWorker): void {
    if (this.#workers.has(worker)) return;
    this.#workers.add(worker);
    const { pools, upstreams } = this.#lent;
    worker.tellLent([
      ...[...pools.told].map(([name, lent]) => ["pool", name, lent] as const),
      ...[...upstreams.told].map(([name, lent]) => ["upstream", name, lent] as const),
    ]);
  }

  #tell(lent: readonly WireLent[]): void {
    for (const { tellLent } of this.#workers) tellLent(lent);
  }
}

type MapValue<Values> = Values extends ReadonlyMap<string, infer Value> ? Value : never;
