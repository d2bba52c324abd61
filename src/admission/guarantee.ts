import { guaranteedTokens, guaranteeSeconds } from "../domain/limits/capacity.ts";
import type { Model } from "../domain/model.ts";
import { guaranteeLimit } from "../domain/limits/slots.ts";
import type { LimitScope } from "../domain/limits/limit-scope.ts";
import type { Call } from "../snapshot/call.ts";
import { scopeTerms } from "./plan-scopes.ts";

/** The provisioned throughput of a key at a model. */
export interface Guarantee {
  readonly scopes: readonly LimitScope[];
  /** The length of its window. */
  readonly seconds: number;
  /** The tokens in that window. */
  readonly tokens: number;
}

/** Undefined when the key has no units, or the model has no target in the pool of the units. */
export function guaranteeOf(
  { caller, snapshot }: Pick<Call, "caller" | "snapshot">,
  model: Model,
): Guarantee | undefined {
  const { limitScope, provisionedUnits, provisionedPool } = caller.key;
  if (provisionedUnits === 0 || provisionedPool === undefined) return undefined;
  const pool = snapshot.pools.get(provisionedPool);
  if (pool === undefined) return undefined;
  if (!model.targets.some((target) => target.pool === pool.name)) return undefined;
  const tokensPerMinute = guaranteedTokens(provisionedUnits, pool);
  const seconds = guaranteeSeconds(tokensPerMinute, model.contextWindow);
  const tokens = guaranteeLimit(tokensPerMinute, seconds);
  const id = guaranteeScopeId(limitScope);
  const window = { seconds };
  const { overrunFactor, ...terms } = scopeTerms({ caller, snapshot });
  return {
    scopes: [
      { id, unit: "requests", window, limit: Infinity, ...terms },
      { id, unit: "tokens", window, limit: tokens, overrunFactor, ...terms },
    ],
    seconds,
    tokens,
  };
}

/** The scope of a key's guarantee, for all models and pools. */
export function guaranteeScopeId(limitScope: string): string {
  return `guarantee:${limitScope}`;
}
