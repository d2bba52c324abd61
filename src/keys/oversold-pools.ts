import { sellableUnits, type Pool } from "../domain/limits/capacity.ts";

export interface OversoldPool {
  readonly pool: string;
  readonly soldUnits: number;
  /** 0 when the configuration has no such pool any more. */
  readonly sellableUnits: number;
  readonly isConfigured: boolean;
}

/**
 * Pools of which more is sold than they can hold at once, as a changed configuration may make them:
 * their guarantees may then not be kept. `soldUnits` is by pool.
 */
export function oversoldPools(
  pools: ReadonlyMap<string, Pool>,
  soldUnits: ReadonlyMap<string, number>,
): readonly OversoldPool[] {
  const all = [...soldUnits].map(([name, sold]) => {
    const pool = pools.get(name);
    const sellable = pool === undefined ? 0 : sellableUnits(pool);
    const isConfigured = pool !== undefined;
    return { pool: name, soldUnits: sold, sellableUnits: sellable, isConfigured };
  });
  return all.filter(({ soldUnits: sold, sellableUnits: sellable }) => sold > sellable);
}
