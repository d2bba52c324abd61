import type { Account, Application } from "../../store/entities.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { isNetwork } from "../../domain/network.ts";
import type { Plan } from "../../domain/limits/plan.ts";
import type { Principal } from "../../domain/principal.ts";
import type { ControlView } from "../../store/repositories/control-store.ts";
import { invalidField, notPermitted, wrongState } from "../operation/refusals.ts";
import { unknownName } from "../operation/known-names.ts";
import type { WantedSettings } from "../contract/keys.ts";
import type { KeySettings } from "./issue-key.ts";
import { checkCapacity, namesCapacity } from "./provisioned.ts";
import type { Platform, PlatformEnvironment } from "../services.ts";

/** The context of the rules. */
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

/** Throws 400 for an unknown environment. */
export function requireEnvironment(platform: Platform, name: string): PlatformEnvironment {
  const environment = platform.environments.find((candidate) => candidate.name === name);
  if (environment !== undefined) return environment;
  const known = platform.environments.map((candidate) => candidate.name);
  throw unknownName("environment", { noun: "environment", written: name, known });
}

/** Plans open to all keys: those with limits of their own and without provisioned throughput. */
export function ordinaryPlans(platform: Platform): readonly string[] {
  return [...platform.plans.values()]
    .filter(({ limits, provisioned }) => limits !== undefined && !provisioned)
    .map(({ name }) => name);
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
