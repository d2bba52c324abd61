import type { Application } from "../../domain/accounts/account.ts";
import { invalidField } from "../operation/field-error.ts";
import type { WantedSettings } from "../contract/keys.ts";
import type { KeySettings } from "./issue-key.ts";
import type { Platform } from "../services.ts";

interface CapacityRules {
  readonly platform: Platform;
  readonly application: Application;
}

/** Whether a request sets provisioned throughput. */
export function namesCapacity(wanted: WantedSettings): boolean {
  return wanted.provisioned_units !== undefined || wanted.provisioned_pool !== undefined;
}

/** Checks the pool of units; `check-sale` checks their number. Throws 400. */
export function checkCapacity(
  { provisionedUnits: units, provisionedPool: name }: KeySettings,
  wanted: WantedSettings,
  { platform, application }: CapacityRules,
): void {
  if (units === 0) {
    if (!wanted.provisioned_pool) return;
    const advice = "a key without units has no pool; set 'provisioned_units' too, or omit it";
    throw invalidField("provisioned_pool", advice);
  }
  const { environment } = application;
  const serving = poolsOf(platform, environment);
  if (platform.pools.size === 0) {
    const advice = "no pool is configured; add one to 'pools', or use 0";
    throw invalidField("provisioned_units", advice);
  }
  if (serving.length === 0) {
    const advice =
      `no pool serves a model of environment ${environment}; set the pool of a target, or ` +
      "use 0";
    throw invalidField("provisioned_units", advice);
  }
  const names = serving.join(", ");
  if (name === undefined) {
    const advice = `there are several pools; choose one that serves environment ${environment}: ${names}`;
    throw invalidField("provisioned_pool", advice);
  }
  if (!platform.pools.has(name)) {
    throw invalidField("provisioned_pool", `unknown pool; use ${names}`);
  }
  if (serving.includes(name)) return;
  const advice = `pool ${name} serves no model of environment ${environment}; use ${names}`;
  throw invalidField("provisioned_pool", advice);
}

/** Names of the pools that serve an environment. */
function poolsOf(platform: Platform, environment: string): readonly string[] {
  return [...platform.pools.values()]
    .filter(({ models }) => models.some((model) => model.environment === environment))
    .map(({ name }) => name);
}
