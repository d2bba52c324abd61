import { Capacity, type CapacityOptions } from "../../../admission/capacity/capacity.ts";
import type { ConfiguredPlaces } from "../../../admission/capacity/place.ts";
import type { Clock } from "../../../domain/clock.ts";
import type { RoutingSettings } from "../../../domain/routing-settings.ts";
import { ConcurrencyLimit } from "../../../routing/health/concurrency-limit.ts";
import { PlaceDesk, type PlaceDeskOptions } from "./place-desk.ts";

export interface PlaceCoordinationOptions extends Omit<CapacityOptions, "settings" | "limitOf"> {
  readonly clock: Clock;
  readonly config: PlaceConfig;
}

export interface PlaceConfig extends ConfiguredPlaces {
  readonly routing: Pick<RoutingSettings, "queueLimit">;
}

/** The places that all workers share. */
export class PlaceCoordination {
  readonly capacity: Capacity;
  readonly #clock: Clock;
  readonly #limits = new Map<string, ConcurrencyLimit>();
  /** Calls keep the configuration they began with, so earlier pools and upstreams stay known. */
  readonly #places = {
    pools: new Map<string, MapValue<ConfiguredPlaces["pools"]>>(),
    upstreams: new Map<string, MapValue<ConfiguredPlaces["upstreams"]>>(),
  };
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
  newDesk(ready: PlaceDeskOptions["ready"]): PlaceDesk {
    this.#desks += 1;
    const { capacity } = this;
    const name = `worker-${this.#desks}`;
    return new PlaceDesk({ name, capacity, places: this.#places, clock: this.#clock, ready });
  }
}

type MapValue<Values> = Values extends ReadonlyMap<string, infer Value> ? Value : never;
