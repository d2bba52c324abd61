import { GatewayError } from "../domain/gateway-error.ts";
import type { RefusalExplanation, RefusalRule, WindowSlot } from "../domain/refusal.ts";
import { formatGoDuration, rateLimitHeaders, retryHeaders } from "../limits/headers.ts";
import type { LimitDecision } from "../storage/store.ts";
import type { Guarantee } from "./capacity/guarantee.ts";
import type { Call } from "./call.ts";
import { accountScopeId } from "./plan-scopes.ts";
import type { ResolvedModel } from "./resolve-model.ts";

export interface RefusedAdmission {
  readonly request: {
    readonly call: Pick<Call, "caller" | "environment">;
    /** Undefined for a request that was refused before its body was read. */
    readonly resolved?: ResolvedModel;
  };
  /** Undefined: the plan refused. */
  readonly guarantee?: Guarantee;
  readonly decision: Extract<LimitDecision, { isAdmitted: false }>;
  readonly askedTokens: number;
  /** Wall clock. */
  readonly now: number;
}

/** The numbers of the limit that refused. */
interface BrokenLimit {
  readonly limit: number;
  readonly used: number;
  readonly asked: number;
}

/** 429 with what the caller can do about it, for the caller and for whoever explains it. */
export function admissionRefusal(refused: RefusedAdmission): GatewayError {
  const { overrun } = refused.decision;
  return overrun === undefined ? limitRefusal(refused) : overrunRefusal(refused, overrun);
}

type Refused = RefusedAdmission["decision"];

/** Without a cap a call could use more than its key may owe. */
function overrunRefusal(
  refused: RefusedAdmission,
  { limit, used, asked }: NonNullable<Refused["overrun"]>,
): GatewayError {
  const { retryAfterMs, state } = refused.decision;
  const subject = subjectOf(refused, "tokens per min (TPM)");
  const could =
    `without a cap on its output the request could use ${asked} tokens more than are counted for ` +
    "it";
  const message =
    retryAfterMs === undefined
      ? `Request too large for ${subject}: ${could}, and at most ${limit} are allowed. Please set ` +
        "`max_completion_tokens` or `max_tokens`."
      : `Rate limit reached for ${subject}: ${could}, other requests under way ${used}, and at most ` +
        `${limit} are allowed together. Please set \`max_completion_tokens\` or \`max_tokens\`, or ` +
        "try again when they have ended.";
  return new GatewayError("rate_limit_exceeded", {
    message,
    type: "tokens",
    headers: { ...rateLimitHeaders(state), ...retryHeaders(retryAfterMs) },
    explanation: {
      ...whose(refused),
      rule: "uncapped_output",
      summary:
        `Calls under way could use ${used} tokens beyond what is counted for them, and the request, ` +
        `which does not cap its output, ${asked}, of at most ${limit} (overrun_factor).`,
    },
  });
}

function limitRefusal(refused: RefusedAdmission): GatewayError {
  const { dimension, retryAfterMs, state, debt } = refused.decision;
  const isTokens = dimension === "tokens";
  const limit = isTokens ? state.limits.tokensPerMinute : state.limits.requestsPerMinute;
  const used = isTokens ? limit - state.remainingTokens + debt : limit - state.remainingRequests;
  const asked = isTokens ? refused.askedTokens : 1;
  const subject = subjectOf(refused, isTokens ? "tokens per min (TPM)" : "requests per min (RPM)");
  const message =
    retryAfterMs === undefined
      ? `Request too large for ${subject}: Limit ${limit}, Requested ${asked}. ` +
        "The input or output tokens must be reduced in order to run successfully."
      : `Rate limit reached for ${subject}: Limit ${limit}, Used ${used}, Requested ${asked}. ` +
        `Please try again in ${formatGoDuration(retryAfterMs)}.`;
  return new GatewayError("rate_limit_exceeded", {
    message,
    type: dimension,
    headers: { ...rateLimitHeaders(state), ...retryHeaders(retryAfterMs) },
    explanation: explain(refused, { limit, used, asked }),
  });
}

function subjectOf({ request, guarantee, decision }: RefusedAdmission, ofPlan: string): string {
  const { resolved, call } = request;
  const { application, accountId } = call.caller.key;
  const what = guarantee === undefined ? ofPlan : `provisioned tokens per ${guarantee.seconds} s`;
  const model = resolved === undefined ? "" : `${resolved.model.alias} in `;
  const isOfAccount = decision.scopeId === accountScopeId(accountId);
  const whose = isOfAccount ? "all applications of the account" : `application ${application}`;
  return `${model}${whose} on ${what}`;
}

function whose({ request }: RefusedAdmission) {
  const { caller, environment } = request.call;
  const { key, publicId } = caller;
  return {
    keyId: key.id,
    publicId,
    accountId: key.accountId,
    application: key.application,
    environment: environment.name,
    ...(request.resolved !== undefined && { model: request.resolved.model.alias }),
  };
}

function explain(
  refused: RefusedAdmission,
  { limit, used, asked }: BrokenLimit,
): RefusalExplanation {
  const { guarantee, decision, now } = refused;
  const { scopeId, dimension, freeAfterMs, slots, debt } = decision;
  const rule = brokenRule(decision, guarantee);
  const seconds = guarantee?.seconds ?? 60;
  const debtOf = dimension === "tokens" ? debt : 0;
  const owed =
    debtOf === 0
      ? ""
      : ` Calls before it used ${debtOf} tokens beyond the limit, which are paid first.`;
  return {
    rule,
    summary:
      rule === "request_too_large"
        ? `The request asks for ${asked} tokens, more than the ${limit} of ${wholeTime(guarantee)}.`
        : `The last ${seconds} s hold ${used - debtOf} of ${limit} ${dimension}, and the request ` +
          `asks for ${asked}.${owed}`,
    ...whose(refused),
    window: {
      scopeId,
      limit,
      used,
      requested: asked,
      freeAt: freeAfterMs === undefined ? undefined : now + freeAfterMs,
      slots: byMinute(slots),
    },
  };
}

function wholeTime(guarantee: Guarantee | undefined): string {
  return guarantee === undefined ? "a whole minute" : `${guarantee.seconds} s of the guarantee`;
}

/** A guarantee may count an hour; what is older than the newest minute is kept by the minute. */
function byMinute(slots: readonly WindowSlot[]): readonly WindowSlot[] {
  const merged: WindowSlot[] = [];
  for (const slot of slots) {
    const before = merged.at(-1);
    const minute = Math.floor(slot.ageMs / 60_000);
    if (
      before === undefined ||
      slot.ageMs < 61_000 ||
      Math.floor(before.ageMs / 60_000) !== minute
    ) {
      merged.push(slot);
      continue;
    }
    merged[merged.length - 1] = {
      ageMs: slot.ageMs,
      requests: before.requests + slot.requests,
      tokens: before.tokens + slot.tokens,
    };
  }
  return merged;
}

function brokenRule(
  { dimension, retryAfterMs }: Refused,
  guarantee: Guarantee | undefined,
): RefusalRule {
  if (dimension === "requests" && guarantee === undefined) return "requests_per_minute";
  if (retryAfterMs === undefined) return "request_too_large";
  return guarantee === undefined ? "tokens_per_minute" : "guarantee_used_up";
}
