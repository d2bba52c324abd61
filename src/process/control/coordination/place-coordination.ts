import {
  Capacity,
  type CapacityOptions,
  type PoolName,
} from "../../../admission/capacity/capacity.ts";
import type {
  BusyPool,
  ConfiguredPlaces,
  PlaceCandidate,
} from "../../../admission/capacity/place.ts";
import type { Clock } from "../../../domain/clock.ts";
import type { RoutingSettings } from "../../../domain/settings.ts";
import { ConcurrencyLimit } from "../../../routing/health/concurrency-limit.ts";
import type { WireBound, WireLent } from "../../link/place-wire.ts";
import { LentPlaces } from "./lent-places.ts";
import { RoutingDesk } from "./routing-desk.ts";
import { PlaceDesk, type HolderNames, type PlaceDeskOptions } from "./place-desk.ts";
import { ScarcePlaces, type KeepingWorker } from "./scarce-places.ts";

export interface PlaceCoordinationOptions extends Omit<CapacityOptions, "settings" | "limitOf"> {
  readonly clock: Clock;
  readonly config: PlaceConfig;
  readonly workers: number;
}

/** A worker that has connected. */
export interface PlaceWorker extends Pick<PlaceDeskOptions, "when">, KeepingWorker {
  readonly tellLent: (lent: readonly WireLent[]) => void;
}

export interface PlaceConfig extends ConfiguredPlaces {
  readonly routing: Pick<RoutingSettings, "queueLimit" | "retryBudgetPercent" | "retryFloor">;
}

/** The places that all workers share. */
export class PlaceCoordination {
  readonly capacity: Capacity;
  /** What the attempts of all workers reveal about targets. */
  readonly routing: RoutingDesk;
  readonly #clock: Clock;
  readonly #limits = new Map<string, ConcurrencyLimit>();
  /** Calls keep the configuration they began with, so earlier pools and upstreams stay known. */
  readonly #places = {
    pools: new Map<string, MapValue<ConfiguredPlaces["pools"]>>(),
    upstreams: new Map<string, MapValue<ConfiguredPlaces["upstreams"]>>(),
  };
  readonly #lent: { readonly pools: LentPlaces; readonly upstreams: LentPlaces };
  readonly #scarce: ScarcePlaces;
  readonly #workers = new Set<PlaceWorker>();
  #config: PlaceConfig;
  #desks = 0;

  constructor(options: PlaceCoordinationOptions) {
    const { config, clock } = options;
    this.#clock = clock;
    this.#config = config;
    this.#scarce = new ScarcePlaces({ clock, isPlenty: (bound) => this.#isPlenty(bound) });
    this.capacity = new Capacity({
      ...options,
      settings: () => this.#config.routing,
      limitOf: (targetId) => this.limitOf(targetId),
      recall: ({ target, why }) => this.#scarce.recall(boundsOf(target, why)),
    });
    this.routing = new RoutingDesk({
      clock,
      settings: () => this.#config.routing,
      limitOf: (targetId) => this.limitOf(targetId),
      recall: (targetId) => this.#scarce.recall([["target", targetId]]),
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
      onTaken: (names) => this.#look(names),
      recall: (upstream) => this.#scarce.recall([["upstream", upstream]]),
      onEnd: () => {
        this.#workers.delete(worker);
        this.#scarce.leave(worker);
      },
    });
  }

  /** Places become scarce once half of them are used, until less than a quarter is in use. */
  #look({ pool, upstream }: HolderNames): void {
    this.#lookAt({ kind: "upstream", name: upstream });
    if (pool !== undefined) this.#lookAt({ kind: "pool", name: pool });
  }

  #lookAt(name: PoolName): void {
    const { held, limit } = this.capacity.use(name) ?? { held: 0, limit: 0 };
    if (held * 2 > limit) void this.#scarce.recall([[name.kind, name.name]]);
  }

  #isPlenty([kind, name]: WireBound): boolean {
    if (kind === "target") {
      return this.limitOf(name).limitAt(this.#clock.monotonic()) === Infinity;
    }
    const use = this.capacity.use({ kind, name });
    return use === undefined || (!use.isWaitedFor && use.held * 4 < use.limit);
  }

  /** Reports the lent places to the worker, now and whenever they change. */
  #listen(worker: PlaceWorker): void {
    if (this.#workers.has(worker)) return;
    this.#workers.add(worker);
    this.#scarce.join(worker);
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

/** The bounds whose kept places may have caused a refusal or may delay a waiting call. */
function boundsOf(
  { id, upstream, pool }: PlaceCandidate["target"],
  { busy, retryAfterMs }: BusyPool,
): readonly WireBound[] {
  if (busy === "limit") return [["target", id]];
  if (retryAfterMs === Infinity) return [];
  return pool === undefined
    ? [["upstream", upstream]]
    : [
        ["pool", pool],
        ["upstream", upstream],
      ];
}

type MapValue<Values> = Values extends ReadonlyMap<string, infer Value> ? Value : never;
