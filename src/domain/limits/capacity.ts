import type { CapacityClass } from "../usage/usage.ts";

/** The capacity that a caller requests with the header `x-sluice-capacity`. */
export const capacityModes = ["auto", "provisioned-only", "on-demand-only"] as const;
export type CapacityMode = (typeof capacityModes)[number];

/** Capacity of the targets that name it; keys buy units of it. */
export interface Pool {
  readonly name: string;
  /** `dedicated`: only for provisioned calls; `shared`: other calls get the unsold part. */
  readonly kind: "dedicated" | "shared";
  readonly tokensPerMinute: number;
  /** Most concurrent calls; undefined: unlimited. */
  readonly maxInFlight: number | undefined;
  /** Share, in percent, that is never sold. */
  readonly onDemandFloorPercent: number;
  /** Tokens per minute that one unit guarantees. */
  readonly unitTokensPerMinute: number;
}

/** A pool, or the targets of an upstream without one. */
export interface PoolName {
  readonly kind: "pool" | "upstream";
  readonly name: string;
}

/** Calls by class. */
export interface PoolLoad extends PoolName {
  readonly inFlight: Readonly<Record<CapacityClass, number>>;
  readonly queued: Readonly<Record<CapacityClass, number>>;
}

/** A guarantee counts a second less than a minute, so in the long run it admits this much more. */
const guaranteeOvercount = 60 / 59;

/** Tokens per minute guaranteed by this many units of a pool. */
export function guaranteedTokens(units: number, pool: Pool): number {
  return units * pool.unitTokensPerMinute;
}

/** Tokens per minute that a pool must hold back for a guarantee. */
export function heldTokens(tokensPerMinute: number): number {
  return Math.ceil(tokensPerMinute * guaranteeOvercount);
}

/** The sold units of a pool: how many keys hold each number of units. */
export type UnitHoldings = ReadonlyMap<number, number>;

export function unitsIn(holdings: UnitHoldings): number {
  let sum = 0;
  for (const [units, keys] of holdings) sum += units * keys;
  return sum;
}

/** Tokens per minute of a pool that are never sold. */
export function floorTokens(pool: Pool): number {
  return Math.ceil((pool.tokensPerMinute * pool.onDemandFloorPercent) / 100);
}

/** Most units of a pool that can be sold to all keys together. */
export function sellableUnits(pool: Pool): number {
  const room = pool.tokensPerMinute - floorTokens(pool);
  let units = Math.floor(room / guaranteeOvercount / pool.unitTokensPerMinute);
  while (heldTokens(guaranteedTokens(units + 1, pool)) <= room) units += 1;
  while (units > 0 && heldTokens(guaranteedTokens(units, pool)) > room) units -= 1;
  return units;
}
