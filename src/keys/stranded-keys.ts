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
  const found = new Map<string, StrandedKeys>();
  const add = (what: StrandedKeys["what"], name: string): void => {
    const keys = (found.get(`${what} ${name}`)?.keys ?? 0) + 1;
    found.set(`${what} ${name}`, { what, name, keys });
  };
  for (const { key } of secrets) {
    if (!names.has(key.environment)) add("environment", key.environment);
    if (key.limits === undefined && !plans.has(key.plan)) add("plan", key.plan);
  }
  return [...found.values()];
}

export interface UnpooledUnits {
  readonly keys: number;
  readonly units: number;
}

/** Counts live keys whose units have no pool, as keys of older versions: they guarantee nothing. */
export function findUnpooledUnits(secrets: Iterable<StoredSecret>): UnpooledUnits {
  const unitsOf = new Map<string, number>();
  for (const { key } of secrets) {
    const { id, provisionedUnits, provisionedPool } = key;
    if (provisionedUnits > 0 && provisionedPool === undefined) unitsOf.set(id, provisionedUnits);
  }
  const units = [...unitsOf.values()].reduce((sum, each) => sum + each, 0);
  return { keys: unitsOf.size, units };
}
