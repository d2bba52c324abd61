import {
  guaranteedTokens,
  heldTokens,
  type Pool,
  type UnitHoldings,
} from "../../domain/limits/capacity.ts";

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
