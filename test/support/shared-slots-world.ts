import { Capacity } from "../../src/admission/capacity/capacity.ts";
import type { EnterResult, Place, PlaceRequest } from "../../src/admission/capacity/place.ts";
import { SharedSlots } from "../../src/admission/capacity/shared/shared-slots.ts";
import { systemClock } from "../../src/domain/clock.ts";
import type { Pool, UnitHoldings } from "../../src/domain/limits/capacity.ts";
import { ConcurrencyLimit } from "../../src/routing/health/concurrency-limit.ts";
import type { Snapshot } from "../../src/snapshot/snapshot.ts";
import type { ValkeyClient } from "../../src/store/limits/valkey/client.ts";
import type { ValkeyLimits } from "../../src/store/limits/valkey/limit-store.ts";
import { valkeySlots } from "../../src/store/limits/valkey/slot-store.ts";
import { snapshotOf, targetOf, upstreamOf } from "./pipeline-fixtures.ts";
import { clientOf, limitsOver } from "./valkey-limits.ts";
import type { ValkeyServer } from "./valkey-server.ts";

export interface SlotWorldOptions {
  readonly pool?: Partial<Pool>;
  /** Slots of the upstream `up`. */
  readonly upstream?: number;
  /** Units by key. */
  readonly units?: Readonly<Record<string, number>>;
  readonly timeoutMs?: number;
  readonly processes?: number;
  /** For the certificate of the server. */
  readonly authorities?: string | undefined;
}

export const plainPool: Pool = {
  name: "shared",
  kind: "shared",
  tokensPerMinute: 100_000_000,
  maxInFlight: 10,
  onDemandFloorPercent: 20,
  unitTokensPerMinute: 1_000_000,
};

interface Parts {
  readonly client: ValkeyClient;
  readonly limits: ValkeyLimits;
  readonly options: SlotWorldOptions;
}

let started = 0;

/** One of several processes that share slots through a server. */
export class SlotProcess implements AsyncDisposable {
  readonly capacity: Capacity;
  readonly snapshot: Snapshot;
  readonly limits: ValkeyLimits;
  readonly slots: SharedSlots;
  readonly held = new Set<Place>();
  readonly #client: ValkeyClient;
  #calls = 0;

  constructor({ client, limits, options }: Parts) {
    const { pool = {}, upstream = 1_000_000, units = {}, processes = 1 } = options;
    const clock = systemClock;
    this.#client = client;
    this.limits = limits;
    const { trust } = limits;
    const process = `slots${(started += 1)}`;
    const store = valkeySlots({ client, trust, process, processes: () => processes });
    this.slots = new SharedSlots({ clock, store });
    const ofTargets = new Map<string, ConcurrencyLimit>();
    this.capacity = new Capacity({
      clock,
      limits,
      settings: () => ({ queueLimit: 1_000 }),
      units: {
        holdings: () => holdingsOf(units),
        unitsOf: (_pool, keyId) => units[keyId] ?? 0,
      },
      limitOf: (targetId) => {
        const limit = ofTargets.get(targetId) ?? new ConcurrencyLimit();
        ofTargets.set(targetId, limit);
        return limit;
      },
      shared: this.slots,
    });
    this.snapshot = {
      ...snapshotOf([upstreamOf("up", { maxInFlight: upstream })]),
      pools: new Map([["shared", { ...plainPool, ...pool }]]),
    };
    this.capacity.follow(this.snapshot);
  }

  /** Undefined: the call was refused. */
  async enter(
    wish: Partial<PlaceRequest> = {},
    { waitMs = 0, pool = "shared" }: { readonly waitMs?: number; readonly pool?: string } = {},
  ): Promise<Place | undefined> {
    this.#calls += 1;
    const { accountId = "account" } = wish;
    const target = targetOf("up", pool === "" ? { id: "up" } : { id: `up/${pool}`, pool });
    const request: PlaceRequest = {
      callId: `call ${this.#calls}`,
      capacityClass: "on-demand",
      provisionedPool: pool,
      accountId,
      keyId: accountId,
      tokens: 100,
      ...wish,
    };
    const { signal } = new AbortController();
    const ask = { request, candidates: [{ target }], snapshot: this.snapshot, signal, waitMs };
    const entered: EnterResult = await this.capacity.enter(ask);
    if (!("place" in entered)) return undefined;
    this.held.add(entered.place);
    return entered.place;
  }

  leave(place: Place): void {
    this.held.delete(place);
    place.leave();
  }

  leaveAll(): void {
    for (const place of this.held) this.leave(place);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.slots.close();
    await this.limits.end();
    this.#client.close();
  }
}

export async function startProcess(
  server: Pick<ValkeyServer, "url">,
  options: SlotWorldOptions = {},
): Promise<SlotProcess> {
  const { timeoutMs = 60_000, authorities, processes = 1 } = options;
  const client = await clientOf(server, { timeoutMs, authorities });
  const limits = await limitsOver(client, { timeoutMs, processes: () => processes });
  await limits.begin();
  return new SlotProcess({ client, limits, options });
}

/** Resolves once `holds` is true. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await Bun.sleep(5);
}

function holdingsOf(units: Readonly<Record<string, number>>): UnitHoldings {
  const holdings = new Map<number, number>();
  for (const count of Object.values(units)) holdings.set(count, (holdings.get(count) ?? 0) + 1);
  return holdings;
}
