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

export interface UnpooledUnits {
  readonly keys: number;
  readonly units: number;
}

/**
 * Counts live keys that have units but no pool, as older versions made them: they guarantee
 * nothing.
 */
export function findUnpooledUnits(secrets: Iterable<StoredSecret>): UnpooledUnits {
  const unitsOf = new Map<string, number>();
  for (const { key } of secrets) {
    const { id, provisionedUnits, provisionedPool } = key;
    if (provisionedUnits > 0 && provisionedPool === undefined) unitsOf.set(id, provisionedUnits);
  }
  const units = [...unitsOf.values()].reduce((sum, each) => sum + each, 0);
  return { keys: unitsOf.size, units };
}
