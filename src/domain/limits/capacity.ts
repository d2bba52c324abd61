/** Which capacity a caller asks for, in the header `x-sluice-capacity`. */
export const capacityModes = ["auto", "provisioned-only", "on-demand-only"] as const;
export type CapacityMode = (typeof capacityModes)[number];

/** Capacity at the targets that name it, of which keys buy units. */
export interface Pool {
  readonly name: string;
  /** `dedicated`: provisioned calls alone; `shared`: others get what is not sold. */
  readonly kind: "dedicated" | "shared";
  readonly tokensPerMinute: number;
  /** Most calls at once; undefined: as many as come. */
  readonly maxInFlight: number | undefined;
  /** Share, in percent, that is never sold. */
  readonly onDemandFloorPercent: number;
  /** Tokens per minute that one unit guarantees. */
  readonly unitTokensPerMinute: number;
}

/**
 * A guarantee counts one second less than a minute, on the customer's side of the edge between two
 * seconds, so what it admits in the long run is this much more than what was bought.
 */
const guaranteeOvercount = 60 / 59;

/** Tokens per minute that so many units of a pool guarantee. */
export function guaranteedTokens(units: number, pool: Pool): number {
  return units * pool.unitTokensPerMinute;
}

/** What a pool must hold back, per minute, for a guarantee of so many tokens. */
export function heldTokens(tokensPerMinute: number): number {
  return Math.ceil(tokensPerMinute * guaranteeOvercount);
}

/**
 * How long a guarantee counts, in seconds: whole minutes in which it has enough tokens for the
 * largest request, so that a small one is not refused all that it was bought for. At most an hour;
 * what is larger than a guarantee has in an hour is never within it. Whole minutes, because who
 * keeps to a rate by the minute then also keeps to it in all of that time.
 */
export function guaranteeSeconds(tokensPerMinute: number, largestRequestTokens: number): number {
  if (tokensPerMinute <= 0) return 60;
  const minutes = Math.ceil(largestRequestTokens / tokensPerMinute);
  return Math.min(Math.max(minutes, 1), 60) * 60;
}

/** Tokens per minute that calls without a guarantee may use of a pool: all that is not held back. */
export function openTokens(pool: Pool, soldUnits: number): number {
  return Math.max(0, pool.tokensPerMinute - heldTokens(guaranteedTokens(soldUnits, pool)));
}

/**
 * Calls without a guarantee that a pool may serve at once: the share of its places that is not held
 * back, and one at least where there is a second for the guarantees. Without a limit: `Infinity`.
 */
export function openPlaces(pool: Pool, soldUnits: number): number {
  const places = pool.maxInFlight ?? Infinity;
  if (places === Infinity || soldUnits === 0) return places;
  const open = openTokens(pool, soldUnits);
  if (open === 0) return 0;
  const held = Math.ceil((places * (pool.tokensPerMinute - open)) / pool.tokensPerMinute);
  return Math.max(places - held, places > 1 ? 1 : 0);
}

/** The units of a pool that are sold: how many keys have so many, by that number. */
export type UnitHoldings = ReadonlyMap<number, number>;

export function unitsIn(holdings: UnitHoldings): number {
  let sum = 0;
  for (const [units, keys] of holdings) sum += units * keys;
  return sum;
}

/**
 * Places of a pool that so many units guarantee to their key: the share of all that their tokens
 * are, in whole places. None where places have no limit.
 */
export function keyPlaces(units: number, pool: Pool): number {
  const { maxInFlight, tokensPerMinute } = pool;
  if (maxInFlight === undefined) return 0;
  return Math.floor((maxInFlight * guaranteedTokens(units, pool)) / tokensPerMinute);
}

/** What all keys are guaranteed; where more is sold than there is, one place is left to whoever comes. */
export function keptPlaces(pool: Pool, holdings: UnitHoldings): number {
  let sum = 0;
  for (const [units, keys] of holdings) sum += keyPlaces(units, pool) * keys;
  return Math.min(sum, Math.max(0, (pool.maxInFlight ?? 0) - 1));
}

/** Tokens per minute of a pool that are never sold. */
export function floorTokens(pool: Pool): number {
  return Math.ceil((pool.tokensPerMinute * pool.onDemandFloorPercent) / 100);
}

/** Most units of a pool that can be sold, all keys together: those that it can hold at once. */
export function sellableUnits(pool: Pool): number {
  const room = pool.tokensPerMinute - floorTokens(pool);
  let units = Math.floor(room / guaranteeOvercount / pool.unitTokensPerMinute);
  while (heldTokens(guaranteedTokens(units + 1, pool)) <= room) units += 1;
  while (units > 0 && heldTokens(guaranteedTokens(units, pool)) > room) units -= 1;
  return units;
}
