import type { Account, Application } from "../../store/entities.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { isNetwork } from "../../domain/network.ts";
import type { Key } from "../../domain/keys/key.ts";
import { sellableUnits } from "../../domain/limits/capacity.ts";
import type { Plan } from "../../domain/limits/plan.ts";
import type { Principal } from "../../domain/principal.ts";
import type { ControlView } from "../../store/repositories/control-store.ts";
import { invalidField, notPermitted, wrongState } from "../operation/refusals.ts";
import { unknownName } from "../operation/known-names.ts";
import type { WantedSettings } from "../contract/keys.ts";
import type { KeySettings } from "./issue-key.ts";
import { PoolOversold } from "./pool-oversold.ts";
import type { Platform, PlatformEnvironment } from "../services.ts";

export interface KeyRules {
  readonly principal: Principal;
  readonly account: Account;
  readonly application: Application;
  readonly platform: Platform;
  readonly now: number;
}

/**
 * Checks the settings of a new or changed key. Only the fields in `wanted` are checked against the
 * configuration, so a note can be changed although a model is no longer configured. Throws 400 and
 * 403.
 */
export function checkKeySettings(
  settings: KeySettings,
  wanted: WantedSettings,
  rules: KeyRules,
): void {
  if (rules.principal.role === "account_holder") checkAccountHolder(wanted, rules.account);
  const isOfPlan = wanted.plan !== undefined || wanted.limits !== undefined;
  if (isOfPlan || namesCapacity(wanted)) checkPlan(settings, rules.platform);
  if (namesCapacity(wanted)) checkCapacity(settings, wanted, rules);
  if (wanted.plan !== undefined || wanted.allowed_models) {
    const environment = requireEnvironment(rules.platform, rules.application.environment);
    if (wanted.allowed_models) checkModels(wanted.allowed_models, environment);
  }
  if (wanted.allowed_networks) checkNetworks(wanted.allowed_networks);
  if (wanted.expires_at && Date.parse(wanted.expires_at) <= rules.now) {
    throw invalidField("expires_at", "use a time in the future");
  }
}

/** Throws 400. */
export function requireEnvironment(platform: Platform, name: string): PlatformEnvironment {
  const environment = platform.environments.find((candidate) => candidate.name === name);
  if (environment !== undefined) return environment;
  const known = platform.environments.map((candidate) => candidate.name);
  throw unknownName("environment", { noun: "environment", written: name, known });
}

/** Limits how many live keys an account holder can have. Throws 409. */
export async function checkKeyCount(view: ControlView, rules: KeyRules): Promise<void> {
  const { principal, account } = rules;
  if (principal.role !== "account_holder") return;
  const count = await view.keys.countLive(account.id, account.maxKeys);
  if (count < account.maxKeys) return;
  throw wrongState(
    `Your account has reached its maximum of ${account.maxKeys} keys. Revoke one first.`,
  );
}

function checkAccountHolder(wanted: WantedSettings, account: Account): void {
  if (wanted.limits !== undefined) throw operatorsOnly("limits");
  if (wanted.provisioned_units !== undefined) throw operatorsOnly("provisioned_units");
  if (wanted.provisioned_pool !== undefined) throw operatorsOnly("provisioned_pool");
  if (wanted.plan === undefined || account.plans.includes(wanted.plan)) return;
  const plans = account.plans.join(", ");
  const message =
    plans === ""
      ? "Your account has no plans to issue keys on. Ask an operator to add some (`accounts " +
        "update ACCOUNT --plans ...`)."
      : `Your account can issue keys on: ${plans}. Ask an operator for other plans.`;
  throw notPermitted(message, "plan");
}

function operatorsOnly(param: string): GatewayError {
  return notPermitted(`Only operators can set '${param}'. Omit it, or ask an operator.`, param);
}

function checkPlan(settings: KeySettings, platform: Platform): void {
  const plan = requirePlan(platform, settings.plan);
  if (plan.limits === undefined && settings.limits === undefined) {
    throw new GatewayError("missing_required_parameter", {
      message: `Plan ${plan.name} is custom: each key needs 'limits'.`,
      param: "limits",
    });
  }
  if (plan.limits !== undefined && settings.limits !== undefined) {
    throw invalidField(
      "limits",
      `plan ${plan.name} has its own limits; only keys on custom plans can set them`,
    );
  }
  if (settings.provisionedUnits > 0 && !plan.provisioned) {
    throw invalidField("provisioned_units", `plan ${plan.name} does not allow units; use 0`);
  }
}

/** `param` is the field that names the plan. Throws 400. */
export function requirePlan(platform: Platform, name: string, param = "plan"): Plan {
  const plan = platform.plans.get(name);
  if (plan !== undefined) return plan;
  throw unknownName(param, { noun: "plan", written: name, known: [...platform.plans.keys()] });
}

function checkModels(models: readonly string[], environment: PlatformEnvironment): void {
  const known = environment.models.map(({ alias }) => alias);
  for (const [index, written] of models.entries()) {
    if (known.includes(written)) continue;
    const owner = `environment ${environment.name}`;
    throw unknownName(`allowed_models[${index}]`, { noun: "model", owner, written, known });
  }
}

function checkNetworks(networks: readonly string[]): void {
  const index = networks.findIndex((network) => !isNetwork(network));
  if (index === -1) return;
  throw invalidField(`allowed_networks[${index}]`, "use an address or a block such as 10.0.0.0/8");
}

export function namesCapacity(wanted: WantedSettings): boolean {
  return wanted.provisioned_units !== undefined || wanted.provisioned_pool !== undefined;
}

/** Checks the pool of units; `checkSale` checks their number. Throws 400. */
function checkCapacity(
  { provisionedUnits: units, provisionedPool: name }: KeySettings,
  wanted: WantedSettings,
  { platform, application }: KeyRules,
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

function poolsOf(platform: Platform, environment: string): readonly string[] {
  return [...platform.pools.values()]
    .filter(({ models }) => models.some((model) => model.environment === environment))
    .map(({ name }) => name);
}

type Holder = Pick<Key, "provisionedUnits" | "provisionedPool" | "expiresAt">;

/**
 * Checks that a pool has room for the units that a live key gains. Must run in the transaction that
 * writes the key, or two concurrent sales would both find room. A pool that became too small by a
 * change of configuration refuses only sales. Throws 409, and 400 for a missing pool.
 */
export async function checkSale(
  view: Pick<ControlView, "keys">,
  { before, after }: { readonly before?: Holder; readonly after: Holder },
  { principal, platform, now }: Pick<KeyRules, "principal" | "platform" | "now">,
): Promise<void> {
  const name = after.provisionedPool;
  if (name === undefined) return;
  const units = countedUnits(after, now);
  const isOfSamePool = before?.provisionedPool === name;
  const more = units - (isOfSamePool ? countedUnits(before, now) : 0);
  if (more <= 0) return;
  const pool = platform.pools.get(name);
  if (pool === undefined) {
    const todo =
      principal.accountId === undefined ? "set units of another, or 0" : "ask an operator";
    const advice = `pool ${name} is no longer configured; ${todo}`;
    throw invalidField("provisioned_pool", advice);
  }
  const sold = (await view.keys.soldUnits({ pool: name, now })).get(name) ?? 0;
  if (sold + more <= sellableUnits(pool)) return;
  if (principal.accountId === undefined) throw new PoolOversold(pool, { sold, more });
  // An account must not see what others have bought.
  throw new GatewayError("pool_oversold", {
    message: `Pool ${name} does not have the key's ${units} units left. Ask an operator.`,
  });
}

/** The units of an expired key do not count until its expiry is postponed. */
function countedUnits({ provisionedUnits, expiresAt = Infinity }: Holder, now: number): number {
  return expiresAt > now ? provisionedUnits : 0;
}
