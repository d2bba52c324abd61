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
