import type { Capacity } from "../../../../admission/capacity/capacity.ts";
import type {
  BoundParts,
  PoolName,
  RefusedPlace,
} from "../../../../admission/capacity/capacity-options.ts";
import { classAt } from "../../../../admission/capacity/place.ts";
import type { PoolBounds } from "../../../../admission/capacity/pool-bounds.ts";
import type { Clock } from "../../../../domain/clock.ts";
import type { Pool } from "../../../../domain/limits/capacity.ts";
import type { AllotmentStore } from "../../../../store/allotments.ts";
import { AccountsSeen } from "./accounts-seen.ts";
import type { Allotment, Demand } from "./allotment.ts";
import { Allotments } from "./allotments.ts";
import { PoolAllotments } from "./pool-allotments.ts";

export interface PlaceAllotmentsOptions {
  readonly clock: Clock;
  readonly store: AllotmentStore;
}

/**
 * The places that this process has of pools and upstreams which several processes share. Within
 * them, its own queues and rules decide without a round trip.
 */
export class PlaceAllotments implements BoundParts {
  readonly #all: Allotments;
  readonly #accounts = new Map<string, AccountsSeen>();
  readonly #pools = new Map<string, PoolAllotments>();
  #capacity: Pick<Capacity, "partChanged" | "partUse"> | undefined;

  constructor(options: PlaceAllotmentsOptions) {
    const onBeat = (): void => {
      for (const accounts of this.#accounts.values()) accounts.beat();
      for (const pool of this.#pools.values()) pool.beat();
    };
    this.#all = new Allotments({ ...options, onBeat });
  }

  /** Call before anything else. */
  attach(capacity: Pick<Capacity, "partChanged" | "partUse">): void {
    this.#capacity = capacity;
  }

  get processes(): number {
    return this.#all.processes;
  }

  ofPool(pool: Pool, whole: PoolBounds): PoolBounds {
    return this.#pool(pool.name).follow(whole);
  }

  ofUpstream(name: string, whole: number): number {
    const allotment = this.#upstream(name);
    allotment.limit = whole;
    return allotment.places;
  }

  ofDraining(whole: number): number {
    return this.shareOf(whole);
  }

  /** This process's part of a number; the parts of all processes add up to it. */
  shareOf(whole: number): number {
    return this.#all.shareOf(whole);
  }

  left({ kind, name }: PoolName): void {
    if (kind === "pool") this.#pools.get(name)?.left();
    else this.#upstream(name).left();
  }

  askMore(upstream: string): Promise<void> | undefined {
    return this.#upstream(upstream).ask(false);
  }

  /** Asks for what a call lacks; undefined when that is nothing, or a wait is in vain. */
  recall({ request, target, why }: RefusedPlace): Promise<void> | undefined {
    if (why.busy !== "full" || why.retryAfterMs === Infinity) return undefined;
    const { upstream, pool } = target;
    const capacityClass = classAt(request, pool);
    const isGuaranteed = capacityClass === "provisioned";
    const place: PoolName =
      pool === undefined ? { kind: "upstream", name: upstream } : { kind: "pool", name: pool };
    this.#accountsAt(place).seen(request.accountId);
    const lacking = pool === undefined ? [] : this.#pool(pool).lacking(request, capacityClass);
    const atUpstream = this.#upstream(upstream);
    if (!isGuaranteed && !atUpstream.hasRoom) lacking.push(atUpstream);
    if (!isGuaranteed && this.#isQueued(place)) {
      // It takes its turn behind them, for whom places are wanted already.
      for (const allotment of lacking) allotment.look();
      return undefined;
    }
    const asked = lacking
      .map((allotment) => allotment.ask(isGuaranteed))
      .filter((asking) => asking !== undefined);
    return asked.length === 0 ? undefined : Promise.all(asked).then(() => undefined);
  }

  /** Gives everything back that no call uses. */
  close(): Promise<void> {
    return this.#all.close();
  }

  #isQueued(place: PoolName): boolean {
    const queue = this.#capacity?.partUse(place).gate?.queue;
    return queue !== undefined && queue.count("on-demand") + queue.count("spillover") > 0;
  }

  #pool(name: string): PoolAllotments {
    let pool = this.#pools.get(name);
    if (pool === undefined) {
      const place: PoolName = { kind: "pool", name };
      pool = new PoolAllotments({
        name,
        all: this.#all,
        use: () => this.#capacity?.partUse(place).gate,
        accounts: this.#accountsAt(place),
        onChanged: () => this.#capacity?.partChanged(place),
      });
      this.#pools.set(name, pool);
    }
    return pool;
  }

  #upstream(name: string): Allotment {
    const place: PoolName = { kind: "upstream", name };
    return this.#all.at(`upstream ${name}`, {
      demand: () => this.#demandAt(place),
      onChanged: () => this.#capacity?.partChanged(place),
    });
  }

  #demandAt(place: PoolName): Demand {
    const { gate, upstream } = this.#capacity?.partUse(place) ?? {};
    const queue = gate?.queue;
    const queued = queue === undefined ? 0 : queue.count("on-demand") + queue.count("spillover");
    return {
      used: upstream?.count ?? 0,
      waiting: queued + (upstream?.waiting ?? 0),
      waitingFirst: 0,
      accounts: this.#accountsAt(place).count(queue?.accounts),
    };
  }

  #accountsAt({ kind, name }: PoolName): AccountsSeen {
    const key = `${kind} ${name}`;
    let accounts = this.#accounts.get(key);
    if (accounts === undefined) this.#accounts.set(key, (accounts = new AccountsSeen()));
    return accounts;
  }
}
