import { guaranteedTokens, guaranteeSeconds } from "../domain/limits/capacity.ts";
import type { Model } from "../domain/model.ts";
import { guaranteeLimit } from "../domain/limits/slots.ts";
import type { LimitScope } from "../domain/limits/limit-scope.ts";
import type { Call } from "../snapshot/call.ts";
import { uncappedTerms } from "./reserve-tokens.ts";

/** Provisioned throughput that a key has at a model. */
export interface Guarantee {
  readonly scopes: readonly LimitScope[];
  /** How long it counts. */
  readonly seconds: number;
  /** What it has in all of that time. */
  readonly tokens: number;
}

/** Undefined when the key has no units, or the model no target in the pool whose units they are. */
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
  const { overrunFactor } = uncappedTerms({ caller, snapshot });
  return {
    scopes: [
      { id, unit: "requests", window, limit: Infinity },
      { id, unit: "tokens", window, limit: tokens, overrunFactor },
    ],
    seconds,
    tokens,
  };
}

/** The scope in which a key's guarantee is counted, at all models and pools. */
export function guaranteeScopeId(limitScope: string): string {
  return `guarantee:${limitScope}`;
}
