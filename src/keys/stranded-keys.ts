import { sellableUnits, type Pool } from "../domain/limits/capacity.ts";
import type { StoredSecret } from "../store/store.ts";

export interface StrandedKeys {
  readonly what: "environment" | "plan";
  readonly name: string;
  readonly keys: number;
}

export interface ConfiguredNames {
  readonly plans: ReadonlyMap<string, unknown>;
  /** Names of environments. */
  readonly names: ReadonlySet<string>;
}

/** Counts live keys whose environment or plan is not in the configuration, by its name. */
export function findStrandedKeys(
  secrets: Iterable<StoredSecret>,
  { plans, names }: ConfiguredNames,
): readonly StrandedKeys[] {
  const environments = new Map<string, Set<string>>();
  const missingPlans = new Map<string, Set<string>>();
  // A key has two secrets during a rotation, so keys are counted by their ids.
  const add = (found: Map<string, Set<string>>, name: string, keyId: string): void => {
    found.set(name, (found.get(name) ?? new Set()).add(keyId));
  };
  for (const { key } of secrets) {
    if (!names.has(key.environment)) add(environments, key.environment, key.id);
    if (key.limits === undefined && !plans.has(key.plan)) add(missingPlans, key.plan, key.id);
  }
  return [...countsOf("environment", environments), ...countsOf("plan", missingPlans)];
}

function countsOf(
  what: StrandedKeys["what"],
  found: ReadonlyMap<string, ReadonlySet<string>>,
): readonly StrandedKeys[] {
  return [...found].map(([name, keyIds]) => ({ what, name, keys: keyIds.size }));
}

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
