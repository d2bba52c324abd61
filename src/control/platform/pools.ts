import {
  floorTokens,
  guaranteedTokens,
  heldTokens,
  sellableUnits,
} from "../../domain/limits/capacity.ts";
import type { Principal } from "../../domain/principal.ts";
import {
  holderSchema,
  poolDetailsSchema,
  poolKeysLimit,
  poolsSchema,
  type PoolView,
} from "../contract/platform.ts";
import { defineOperation, type Operation, permissions } from "../operation/operation.ts";
import { notFound } from "../operation/scope.ts";
import type { AdminServices, PlatformPool } from "../services.ts";
import { viewAs } from "../values/api-form.ts";

/**
 * Pools of capacity and their buyers. A principal bound to an account sees only the pools of which
 * its keys have units, and only the account's share.
 */
export function poolOperations(services: AdminServices): readonly Operation[] {
  return [listPools(services), getPool(services)];
}

function listPools({ store, platform, clock }: AdminServices): Operation {
  return defineOperation({
    id: "listPools",
    method: "GET",
    path: "/admin/v1/pools",
    resource: "Pools",
    summary: "List pools of provisioned throughput",
    description: "Account holders see the pools of their keys.",
    ...permissions.read,
    answer: poolsSchema,
    async run({ call: { principal } }) {
      const { accountId } = principal;
      const now = clock.now();
      const sold = await store.read((view) => view.keys.soldUnits({ accountId, now }));
      const { pools } = platform();
      const configured = accountId === undefined ? [...pools.keys()] : [];
      const names = new Set([...configured, ...sold.keys()]);
      const data = [...names].map((name) =>
        viewPool({ name, pool: pools.get(name), sold: sold.get(name) ?? 0 }, principal),
      );
      return { data };
    },
  });
}

function getPool({ store, platform, clock }: AdminServices): Operation {
  return defineOperation({
    id: "getPool",
    method: "GET",
    path: "/admin/v1/pools/{name}",
    resource: "Pools",
    summary: "Show a pool and the keys with units of it",
    ...permissions.read,
    answer: poolDetailsSchema,
    run: ({ call: { principal }, parameters }) =>
      store.read(async ({ keys }) => {
        const { accountId } = principal;
        const now = clock.now();
        const name = parameters["name"] ?? "";
        const pool = platform().pools.get(name);
        const sold = (await keys.soldUnits({ pool: name, accountId, now })).get(name) ?? 0;
        const isSeen = sold > 0 || (pool !== undefined && accountId === undefined);
        if (!isSeen) throw notFound("pool");
        const filter = { provisionedPool: name, accountId, countsAt: now };
        const holders = await keys.list(filter, { limit: poolKeysLimit });
        return {
          ...viewPool({ name, pool, sold }, principal),
          keys: holders.items.map((key) => viewAs(holderSchema, key)),
          has_more_keys: holders.next !== undefined,
        };
      }),
  });
}

interface PoolState {
  readonly name: string;
  /** Undefined when the pool is no longer configured. */
  readonly pool: PlatformPool | undefined;
  /** Sold units that the principal may see. */
  readonly sold: number;
}

function viewPool({ name, pool, sold }: PoolState, { accountId }: Principal): PoolView {
  const guaranteed = pool && guaranteedTokens(sold, pool);
  const shown = {
    name,
    kind: pool?.kind ?? null,
    unit_tokens_per_minute: pool?.unitTokensPerMinute ?? null,
    sold_units: sold,
    sold_tokens_per_minute: guaranteed ?? null,
    held_tokens_per_minute: guaranteed === undefined ? null : heldTokens(guaranteed),
    models: pool === undefined ? [] : [...pool.models],
  };
  const isOfAll = accountId === undefined;
  return { ...shown, ...(isOfAll ? viewCapacity(pool, sold) : hiddenCapacity) };
}

/** The fields about upstreams and other accounts. */
const hiddenCapacity = {
  status: null,
  tokens_per_minute: null,
  max_in_flight: null,
  on_demand_floor_percent: null,
  floor_tokens_per_minute: null,
  sellable_units: null,
  units_left: null,
  targets: null,
};

function viewCapacity(pool: PlatformPool | undefined, sold: number) {
  if (pool === undefined) {
    const none = { status: "not_configured" as const, sellable_units: 0, units_left: 0 };
    return { ...hiddenCapacity, ...none };
  }
  const sellable = sellableUnits(pool);
  return {
    status: sold > sellable ? ("oversold" as const) : ("ok" as const),
    tokens_per_minute: pool.tokensPerMinute,
    max_in_flight: pool.maxInFlight ?? null,
    on_demand_floor_percent: pool.onDemandFloorPercent,
    floor_tokens_per_minute: floorTokens(pool),
    sellable_units: sellable,
    units_left: Math.max(0, sellable - sold),
    targets: [...pool.targets],
  };
}
