import { sellableUnits, type Pool } from "../domain/limits/capacity.ts";

export interface OversoldPool {
  readonly pool: string;
  readonly soldUnits: number;
  /** 0 when the pool is no longer configured. */
  readonly sellableUnits: number;
  readonly isConfigured: boolean;
}

/**
 * Pools of which more units are sold than they hold, for example after a change of configuration.
 * Guarantees of such a pool may be broken. `soldUnits` is by pool.
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
