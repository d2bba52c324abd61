import { type BusyPool, classAt, type PlaceCandidate, type PlaceRequest } from "../place.ts";
import { PoolSlots } from "./pool-slots.ts";
import type { SlotServices } from "./slot-set.ts";
import { UpstreamSlots } from "./upstream-slots.ts";

/** Well within the life of what is held. */
const beatMs = 2_000;

/**
 * The slots that this process has of pools and upstreams which several processes share. Within
 * them, its own queues and rules decide without a round trip.
 */
export class SharedSlots {
  readonly #services: SlotServices;
  readonly #pools = new Map<string, PoolSlots>();
  readonly #upstreams = new Map<string, UpstreamSlots>();
  #decided: boolean;
  #stopBeat: () => void = () => undefined;

  constructor(services: SlotServices) {
    this.#services = services;
    this.#decided = services.store.decides;
    this.#plan();
  }

  get processes(): number {
    return this.#services.store.processes;
  }

  pool(name: string): PoolSlots {
    const slots = this.#pools.get(name) ?? new PoolSlots(name, this.#services);
    this.#pools.set(name, slots);
    return slots;
  }

  upstream(name: string): UpstreamSlots {
    const onAsk = (): void => void this.#lookAtStore();
    const slots = this.#upstreams.get(name) ?? new UpstreamSlots(name, this.#services, onAsk);
    this.#upstreams.set(name, slots);
    return slots;
  }

  /** Asks for what a call lacks; undefined when that is nothing, or asking is in vain. */
  recall(
    request: PlaceRequest,
    target: PlaceCandidate["target"],
    why: BusyPool,
  ): Promise<void> | undefined {
    if (why.busy !== "full" || why.retryAfterMs === Infinity) return undefined;
    // The call tries again with what the process may use now.
    if (this.#lookAtStore()) return Promise.resolve();
    const isGuaranteed = classAt(request, target.pool) === "provisioned";
    const upstream = this.upstream(target.upstream);
    const pool = target.pool === undefined ? undefined : this.pool(target.pool);
    const lacking = pool?.lacking(request.keyId, isGuaranteed) ?? [];
    if (!isGuaranteed && !upstream.hasRoom) lacking.push(upstream.set);
    // If it waits now, it is asked for again soon.
    for (const set of lacking) set.plan();
    // Others take their turns before a call without a guarantee, and ask on its behalf.
    const queue = (pool ?? upstream).pool?.gate.open;
    if (!isGuaranteed && queue !== undefined && queue.size > 0) return undefined;
    const asked = lacking.map((set) => set.ask()).filter((asking) => asking !== undefined);
    return asked.length === 0 ? undefined : Promise.all(asked).then(() => undefined);
  }

  async close(): Promise<void> {
    this.#stopBeat();
    const pools = [...this.#pools.values()].map((pool) => pool.close());
    await Promise.all([...pools, ...[...this.#upstreams.values()].map(({ set }) => set.close())]);
  }

  #plan(): void {
    this.#stopBeat = this.#services.clock.schedule(() => {
      for (const pool of this.#pools.values()) pool.beat();
      for (const { set } of this.#upstreams.values()) set.beat();
      this.#lookAtStore();
      this.#plan();
    }, beatMs);
  }

  /** What a process may use changes when the store begins or ceases to decide. */
  #lookAtStore(): boolean {
    const { decides } = this.#services.store;
    if (decides === this.#decided) return false;
    this.#decided = decides;
    for (const { pool } of this.#pools.values()) pool?.gate.serve();
    for (const upstream of this.#upstreams.values()) upstream.changed();
    return true;
  }
}
