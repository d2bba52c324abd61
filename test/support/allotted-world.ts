import { Capacity } from "../../src/admission/capacity/capacity.ts";
import type { EnterResult, Place, PlaceRequest } from "../../src/admission/capacity/place.ts";
import { systemClock } from "../../src/domain/clock.ts";
import type { Pool, UnitHoldings } from "../../src/domain/limits/capacity.ts";
import { PlaceAllotments } from "../../src/process/worker/coordination/allotted/place-allotments.ts";
import { ConcurrencyLimit } from "../../src/routing/health/concurrency-limit.ts";
import type { Snapshot } from "../../src/snapshot/snapshot.ts";
import { Fleet } from "../../src/store/coordinator/valkey/fleet/fleet.ts";
import { ValkeyAllotments } from "../../src/store/coordinator/valkey/places/valkey-allotments.ts";
import type { ValkeyConnection } from "../../src/store/coordinator/valkey/connection/valkey-connection.ts";
import { SharedLimits } from "../../src/store/coordinator/valkey/limits/shared-limits.ts";
import { snapshotOf, targetOf, upstreamOf } from "./pipeline-fixtures.ts";
import { connectTo, type ValkeyServer } from "./valkey-server.ts";

export interface AllottedWorldOptions {
  readonly pool?: Partial<Pool>;
  /** Places of the upstream `up`. */
  readonly upstream?: number;
  /** Units by key. */
  readonly units?: Readonly<Record<string, number>>;
  readonly timeoutMs?: number;
  /** For the certificate of the server. */
  readonly authorities?: string;
}

export const plainPool: Pool = {
  name: "shared",
  kind: "shared",
  tokensPerMinute: 100_000_000,
  maxInFlight: 10,
  onDemandFloorPercent: 20,
  unitTokensPerMinute: 1_000_000,
};

let processes = 0;

/** One of several gateways that share places through a server. */
export class AllottedProcess implements AsyncDisposable {
  readonly capacity: Capacity;
  readonly snapshot: Snapshot;
  readonly connection: ValkeyConnection;
  readonly fleet: Fleet;
  readonly allotments: PlaceAllotments;
  readonly held = new Set<Place>();
  /** Calls that have not been answered. */
  waiting = 0;
  #calls = 0;

  constructor(connection: ValkeyConnection, options: AllottedWorldOptions) {
    const { pool = {}, upstream = Infinity, units = {} } = options;
    processes += 1;
    this.connection = connection;
    const clock = systemClock;
    this.fleet = new Fleet({ connection, clock, worker: `p${processes}`, ownWorkers: 1 });
    const store = new ValkeyAllotments({ connection, fleet: this.fleet });
    this.allotments = new PlaceAllotments({ clock, store });
    const limits = new Map<string, ConcurrencyLimit>();
    this.capacity = new Capacity({
      clock,
      limits: new SharedLimits({
        connection,
        clock,
        random: Math.random,
        reservationTtlMs: 600_000,
        scopeLimit: 100,
        workers: () => 1,
        onError(error) {
          throw error;
        },
      }),
      settings: () => ({ queueLimit: 1_000 }),
      units: {
        holdings: () => holdingsOf(units),
        unitsOf: (_pool, keyId) => units[keyId] ?? 0,
      },
      limitOf: (targetId) => {
        const limit = limits.get(targetId) ?? new ConcurrencyLimit();
        limits.set(targetId, limit);
        return limit;
      },
      parts: this.allotments,
      recall: (refused) => this.allotments.recall(refused),
    });
    this.allotments.attach(this.capacity);
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
    this.waiting += 1;
    const entered: EnterResult = await this.capacity.enter(ask);
    this.waiting -= 1;
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
    await this.allotments.close();
    await this.fleet.close();
    this.connection.close();
  }
}

export async function startProcess(
  server: Pick<ValkeyServer, "url">,
  options: AllottedWorldOptions = {},
): Promise<AllottedProcess> {
  const { timeoutMs = 60_000, authorities } = options;
  const connection = await connectTo(server, { timeoutMs, authorities });
  const process = new AllottedProcess(connection, options);
  await process.fleet.start();
  await untilHeard(connection);
  return process;
}

/** Then it hears what others tell: its subscriptions are made in the order of their channels. */
async function untilHeard(connection: ValkeyConnection): Promise<void> {
  const channel = `sluice:heard:${crypto.randomUUID()}`;
  let isHeard = false;
  const stop = connection.subscribe(channel, () => (isHeard = true));
  while (!isHeard) {
    await connection.publish(channel, "");
    await Bun.sleep(2);
  }
  stop();
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
