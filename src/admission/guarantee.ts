import { guaranteedTokens, guaranteeSeconds } from "../domain/limits/capacity.ts";
import type { Model } from "../domain/model.ts";
import { guaranteeLimits } from "../domain/limits/slots.ts";
import type { LimitScope } from "../domain/limits/limit-scope.ts";
import type { Call } from "../snapshot/call.ts";

/** Provisioned throughput that a key has at a model. */
export interface Guarantee {
  readonly scope: LimitScope;
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
  const limits = { requestsPerMinute: Infinity, tokensPerMinute };
  return {
    scope: { id: guaranteeScopeId(limitScope), limits, guarantee: { seconds } },
    seconds,
    tokens: guaranteeLimits(limits, seconds).tokensPerMinute,
  };
}

/** The scope in which a key's guarantee is counted, at all models and pools. */
export function guaranteeScopeId(limitScope: string): string {
  return `guarantee:${limitScope}`;
}
