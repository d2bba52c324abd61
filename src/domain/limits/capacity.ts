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

/**
 * The period of a guarantee in seconds: as many whole minutes as it needs to have enough tokens for
 * the largest request, because a small guarantee must be usable too. At most an hour; requests
 * larger than that are never within it. The minutes are whole because a caller that keeps to a rate
 * per minute then also keeps to it over the period.
 */
export function guaranteeSeconds(tokensPerMinute: number, largestRequestTokens: number): number {
  if (tokensPerMinute <= 0) return 60;
  const minutes = Math.ceil(largestRequestTokens / tokensPerMinute);
  return Math.min(Math.max(minutes, 1), 60) * 60;
}

/** Tokens per minute of a pool that are not held back for guarantees. */
export function openTokens(pool: Pool, soldUnits: number): number {
  return Math.max(0, pool.tokensPerMinute - heldTokens(guaranteedTokens(soldUnits, pool)));
}

/**
 * Places of a pool for calls without a guarantee: the share that is not held back. If any tokens
 * are left and the pool has several places, at least one. Without a limit: `Infinity`.
 */
export function openPlaces(pool: Pool, soldUnits: number): number {
  const places = pool.maxInFlight ?? Infinity;
  if (places === Infinity || soldUnits === 0) return places;
  const open = openTokens(pool, soldUnits);
  if (open === 0) return 0;
  const held = Math.ceil((places * (pool.tokensPerMinute - open)) / pool.tokensPerMinute);
  return Math.max(places - held, places > 1 ? 1 : 0);
}

/** The sold units of a pool: how many keys hold each number of units. */
export type UnitHoldings = ReadonlyMap<number, number>;

export function unitsIn(holdings: UnitHoldings): number {
  let sum = 0;
  for (const [units, keys] of holdings) sum += units * keys;
  return sum;
}

/** Whole places guaranteed to the key of so many units: their share of the pool's tokens. */
export function keyPlaces(units: number, pool: Pool): number {
  const { maxInFlight, tokensPerMinute } = pool;
  if (maxInFlight === undefined) return 0;
  return Math.floor((maxInFlight * guaranteedTokens(units, pool)) / tokensPerMinute);
}

/** Places guaranteed to all keys; even in an oversold pool, one is left for other calls. */
export function keptPlaces(pool: Pool, holdings: UnitHoldings): number {
  return Math.min(soldPlaces(pool, holdings), mostKeptPlaces(pool));
}

/** Whether there are fewer places than are guaranteed to keys. */
export function arePlacesOversold(pool: Pool, holdings: UnitHoldings): boolean {
  return soldPlaces(pool, holdings) > mostKeptPlaces(pool);
}

function soldPlaces(pool: Pool, holdings: UnitHoldings): number {
  let sum = 0;
  for (const [units, keys] of holdings) sum += keyPlaces(units, pool) * keys;
  return sum;
}

function mostKeptPlaces({ maxInFlight = 0 }: Pool): number {
  return Math.max(0, maxInFlight - 1);
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
