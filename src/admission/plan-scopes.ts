import {
  type LimitScope,
  minuteScopes,
  type RequestKind,
  type ScopeTerms,
} from "../domain/limits/limit-scope.ts";
import type { Limits } from "../domain/limits/plan.ts";
import type { Call } from "../snapshot/call.ts";
import { uncappedTerms } from "./reserve-tokens.ts";
import { guaranteedTokens } from "../domain/limits/capacity.ts";
import type { Model } from "../domain/model.ts";
import { guaranteeLimit } from "../domain/limits/slots.ts";
import { guaranteeSeconds } from "./capacity/guarantee.ts";

/** All limits of a call except its guarantee; made once for each call. */
export function planScopes(call: Pick<Call, "caller" | "snapshot">): readonly LimitScope[] {
  const { key, accountLimits } = call.caller;
  const scopes: LimitScope[] = ownScopes(keyScopeId(key.limitScope), call);
  if (accountLimits !== undefined) {
    scopes.push(...minuteScopes(accountScopeId(key.accountId), accountLimits, scopeTerms(call)));
  }
  return scopes;
}

/** Limits of requests that are no calls. */
export function asideScopes(
  kind: Exclude<RequestKind, "call">,
  request: Pick<Call, "caller" | "snapshot">,
): readonly LimitScope[] {
  return ownScopes(asideScopeId(kind, request.caller.key.limitScope), request);
}

/**
 * The limits of the plan, or the key's own, or those of an end user. While the plan is in audit they count in windows of their
 * own, so that what ran then is no debt of the time after it.
 */
export function ownScopes(
  id: string,
  call: Pick<Call, "caller" | "snapshot">,
  limits: Limits = call.caller.limits,
): [LimitScope, LimitScope] {
  const terms = scopeTerms(call);
  if (uncappedTerms(call).mode !== "audit") return minuteScopes(id, limits, terms);
  const audited = { ...terms, isAudited: true, isClosedAlone: false };
  return minuteScopes(`${auditPrefix}${id}`, limits, audited);
}

const auditPrefix = "audit:";

/** What all scopes of a call have in common. */
function scopeTerms(call: Pick<Call, "caller" | "snapshot">): ScopeTerms {
  const { overrunFactor, whenLimitsUnavailable } = uncappedTerms(call);
  const isClosedAlone = whenLimitsUnavailable === "closed";
  return { overrunFactor, owner: call.caller.key.accountId, isClosedAlone };
}

/** The scope of a limit that all keys of an account share. */
export function accountScopeId(accountId: string): string {
  return `account:${accountId}`;
}

/** The scope of requests that are no calls, limited like calls but counted apart from them. */
function asideScopeId(kind: Exclude<RequestKind, "call">, limitScope: string): string {
  return `${asideNames[kind]}:${limitScope}`;
}

const asideNames = { listing: "models", count: "counts" } as const;

/** The scope of an end user of a key. */
export function endUserScopeId(limitScope: string, endUser: string): string {
  return `end-user:${limitScope}:${endUser}`;
}

export function isOfEndUser(scopeId: string): boolean {
  return withoutAudit(scopeId).startsWith("end-user:");
}

function withoutAudit(scopeId: string): string {
  return scopeId.startsWith(auditPrefix) ? scopeId.slice(auditPrefix.length) : scopeId;
}

/** What the requests of a scope ask for; undefined for calls. */
export function asideOf(scopeId: string): string | undefined {
  const id = withoutAudit(scopeId);
  if (id.startsWith(asideScopeId("listing", ""))) return "lists and usage";
  return id.startsWith(asideScopeId("count", "")) ? "counts of tokens" : undefined;
}

/** The scope of a key's requests and tokens, for all of its secrets. */
export function keyScopeId(limitScope: string): string {
  return `key:${limitScope}`;
}

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
