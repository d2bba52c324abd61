import { sellableUnits } from "../../domain/limits/capacity.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Key } from "../../domain/keys/key.ts";
import type { Principal } from "../../domain/accounts/user.ts";
import type { ControlView } from "../../store/control-store.ts";
import { invalidField } from "../operation/field-error.ts";
import { PoolOversold } from "./pool-oversold.ts";
import type { Platform } from "../services.ts";

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
