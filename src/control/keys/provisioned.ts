import {
  sellableUnits,
  floorTokens,
  guaranteedTokens,
  heldTokens,
  type Pool,
} from "../../domain/limits/capacity.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Key } from "../../domain/keys/key.ts";
import type { Principal } from "../../domain/principal.ts";
import type { ControlView } from "../../store/repositories/control-store.ts";
import { invalidField } from "../operation/refusals.ts";
import type { Platform } from "../services.ts";
import type { Application } from "../../store/entities.ts";
import type { WantedSettings } from "../contract/keys.ts";
import type { KeySettings } from "./issue-key.ts";

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

type Holder = Pick<Key, "provisionedUnits" | "provisionedPool" | "expiresAt">;

export interface Sale {
  /** Undefined for a new key. */
  readonly before?: Holder;
  readonly after: Holder;
}

interface SaleRules {
  readonly principal: Principal;
  readonly platform: Platform;
  readonly now: number;
}

/**
 * Checks that a pool has room for the units that a live key gains. Must run in the transaction that
 * writes the key, or two concurrent sales would both find room. A pool that became too small by a
 * change of configuration refuses only sales. Throws 409, and 400 for a missing pool.
 */
export async function checkSale(
  view: Pick<ControlView, "keys">,
  { before, after }: Sale,
  { principal, platform, now }: SaleRules,
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

/** The numbers of the refusal, for programs. */
type OversaleDetails = ReturnType<typeof detailsOf>;

/** A 409 for units that do not fit beside those already sold, with the calculation. */
export class PoolOversold extends GatewayError {
  readonly details: OversaleDetails;

  constructor(pool: Pool, units: { readonly sold: number; readonly more: number }) {
    const details = detailsOf(pool, units);
    super("pool_oversold", { message: describe(details), param: "provisioned_units" });
    this.details = details;
  }

  override toBody() {
    const { error } = super.toBody();
    return { error: { ...error, details: this.details } };
  }
}

function detailsOf(pool: Pool, { sold, more }: { sold: number; more: number }) {
  const sellable = sellableUnits(pool);
  return {
    pool: pool.name,
    tokens_per_minute: pool.tokensPerMinute,
    unit_tokens_per_minute: pool.unitTokensPerMinute,
    floor_tokens_per_minute: floorTokens(pool),
    sold_units: sold,
    requested_units: more,
    held_tokens_per_minute: heldTokens(guaranteedTokens(sold + more, pool)),
    sellable_units: sellable,
    units_left: Math.max(0, sellable - sold),
  };
}

function describe(details: OversaleDetails): string {
  const { pool, sold_units: sold, requested_units: more, units_left: left } = details;
  const held = details.held_tokens_per_minute;
  const floor = details.floor_tokens_per_minute;
  return (
    `Pool ${pool} cannot hold ${count(more)} more unit${more === 1 ? "" : "s"}: ` +
    `(${count(sold)} + ${count(more)}) x ${count(details.unit_tokens_per_minute)} tokens x 60/59 = ` +
    `${count(held)} held, + ${count(floor)} never sold = ${count(held + floor)} of its ` +
    `${count(details.tokens_per_minute)} tokens per minute. Units left: ${count(left)}.`
  );
}

function count(number: number): string {
  return number.toLocaleString("en-US");
}
