import { GatewayError } from "../domain/errors/gateway-error.ts";
import type { RefusalExplanation, RefusalRule } from "../domain/errors/refusal.ts";
import { formatGoDuration, rateLimitHeaders, retryHeaders } from "../domain/limits/headers.ts";
import type { CallWeights } from "../domain/limits/token-weights.ts";
import type { LimitDecision } from "../store/limits/limit-store.ts";
import { budgetRefusal } from "./budget-refusal.ts";
import { accountScopeId, asideOf, type Guarantee, isOfEndUser } from "./plan-scopes.ts";
import type { Call } from "../snapshot/call.ts";
import type { OutputExpectation } from "./estimate/estimate.ts";
import type { Model } from "../domain/model.ts";

export interface RefusedAdmission {
  readonly request: {
    readonly call: Pick<Call, "caller" | "counted">;
    /** Undefined for a request that was refused before its body was read. */
    readonly model?: Model;
    readonly output?: OutputExpectation;
    /** Whether the input was counted; otherwise its tokens are an estimate. */
    readonly isCounted?: boolean;
  };
  /** Undefined: the plan refused. */
  readonly guarantee?: Guarantee | undefined;
  readonly decision: Extract<LimitDecision, { isAdmitted: false }>;
  readonly askedTokens: number;
  /** Those that its tokens count with; undefined: each counts one. */
  readonly weights?: CallWeights | undefined;
  readonly now: number;
}

interface BrokenLimit {
  readonly limit: number;
  /** What this process grants of it. */
  readonly granted: number;
  readonly used: number;
  readonly asked: number;
}

/** 429 with what the caller can do about it, and an explanation for the operator. */
export function admissionRefusal(refused: RefusedAdmission): GatewayError {
  const { overrun, budgets } = refused.decision;
  if (budgets !== undefined) return budgetRefusal(refused, budgets);
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
  const weighted = refused.weights === undefined ? "" : " (weighted)";
  const could =
    `its answers have no cap and could use ${asked} tokens${weighted} more than are reserved ` +
    "for it";
  const capField = refused.request.output?.capField ?? "max_completion_tokens";
  const setCap = `Please set \`${capField}\``;
  const message =
    retryAfterMs === undefined
      ? `Request too large for ${subject}: ${could}; at most ${limit} are allowed. ${setCap}.`
      : `Rate limit reached for ${subject}: ${could}, and requests under way ${used}; at most ` +
        `${limit} are allowed together. ${setCap}, or try again when they have ended.`;
  return new GatewayError("rate_limit_exceeded", {
    message,
    type: "tokens",
    limits: { state, nowMs: refused.now },
    headers: { ...rateLimitHeaders(state), ...retryHeaders(retryAfterMs) },
    explanation: {
      ...modelOf(refused),
      rule: "uncapped_output",
      summary:
        `The request does not cap its output: it could use ${asked} tokens beyond its reservation, ` +
        `and other calls under way ${used}. The plan allows ${limit} together (overrun_factor). ` +
        weighing(refused) +
        `Have the application set ${capField}, or raise overrun_factor.`,
    },
  });
}

function limitRefusal(refused: RefusedAdmission): GatewayError {
  const { dimension, retryAfterMs, state, debt, share } = refused.decision;
  const isTokens = dimension === "tokens";
  const limit = isTokens ? state.limitTokens : state.limitRequests;
  const granted = share ?? limit;
  const remaining = isTokens ? state.remainingTokens : state.remainingRequests;
  const used = granted - remaining + (isTokens ? debt : 0);
  const asked = isTokens ? refused.askedTokens : 1;
  const notes = isTokens ? notesOf(refused) : [];
  const noted = notes.length === 0 ? "" : ` (${notes.join(", ")})`;
  const subject = subjectOf(refused, isTokens ? "tokens per min (TPM)" : "requests per min (RPM)");
  const now = granted === limit ? "" : ` (for now ${granted}: the gateway's limits are degraded)`;
  const numbers = [
    `Limit ${limit}${now}`,
    `Used ${used}`,
    ...(asked > 0 ? [`Requested ${asked}${noted}`] : []),
  ];
  const owed =
    isTokens && debt > 0 ? " Earlier calls exceeded the limit, and the excess counts." : "";
  const message =
    retryAfterMs === undefined
      ? `Request too large for ${subject}: Limit ${limit}, Requested ${asked}${noted}. ` +
        `${adviceFor(refused)}`
      : `Rate limit reached for ${subject}: ${numbers.join(", ")}.${owed} ` +
        `Please try again in ${formatGoDuration(retryAfterMs)}.`;
  return new GatewayError("rate_limit_exceeded", {
    message,
    type: dimension,
    limits: { state, nowMs: refused.now },
    headers: { ...rateLimitHeaders(state), ...retryHeaders(retryAfterMs) },
    explanation: explain(refused, { limit, granted, used, asked }),
  });
}

/** What the caller cannot know of the size of its request. */
function notesOf({ request, weights }: RefusedAdmission): readonly string[] {
  const isEstimated = request.isCounted !== true;
  return [weights === undefined ? [] : "weighted", isEstimated ? "estimated" : []].flat();
}

function adviceFor({ request }: RefusedAdmission): string {
  const { cap, capField } = request.output ?? {};
  return cap === undefined && capField !== undefined
    ? "Without a cap on its output, the model's longest answer is counted. Please set " +
        `\`${capField}\`, or shorten the input.`
    : "The input or output tokens must be reduced in order to run successfully.";
}

function subjectOf({ request, guarantee, decision }: RefusedAdmission, ofPlan: string): string {
  const { call } = request;
  const { application, accountId } = call.caller.key;
  const what = guarantee === undefined ? ofPlan : `provisioned tokens per ${guarantee.seconds} s`;
  const model = request.model === undefined ? "" : `${request.model.alias} in `;
  const isOfAccount = decision.scopeId === accountScopeId(accountId);
  const ofWhom = isOfEndUser(decision.scopeId) ? "this end user of " : "";
  const whose = isOfAccount
    ? "all applications of the account"
    : `${ofWhom}application ${application}`;
  const aside = asideOf(decision.scopeId);
  const listing = aside === undefined ? "" : `${aside} in `;
  return `${listing}${model}${whose} on ${what}`;
}

function explain(
  refused: RefusedAdmission,
  { limit, granted, used, asked }: BrokenLimit,
): RefusalExplanation {
  const { guarantee, decision, now } = refused;
  const { scopeId, dimension, freeAfterMs, debt } = decision;
  const rule = brokenRule(decision, guarantee);
  const seconds = guarantee?.seconds ?? 60;
  const debtOf = dimension === "tokens" ? debt : 0;
  const isEstimate = dimension === "tokens" && refused.request.isCounted !== true;
  const what = isEstimate ? `an estimated ${asked}` : `${asked}`;
  const wanted = asked > 0 ? ` The request needs ${what} more.` : "";
  const isOfAccount = scopeId === accountScopeId(refused.request.call.caller.key.accountId);
  const aside = asideOf(scopeId);
  const ofListings = aside === undefined ? "" : ` of requests for ${aside}`;
  const ofOne = isOfEndUser(scopeId) ? " of this end user (each_end_user)" : ofListings;
  const ofWhom = isOfAccount ? " of all keys of the account" : ofOne;
  const owed =
    debtOf === 0
      ? ""
      : ` Calls before it used ${debtOf} tokens beyond the limit, which are paid first.`;
  const degraded =
    granted === limit
      ? ""
      : ` The limit is ${limit}; this process grants its share, because what all processes use is ` +
        "not known now. Look for `limits` in `sluice doctor` and in the log.";
  const weighed = dimension === "tokens" ? ` ${weighing(refused)}`.trimEnd() : "";
  return {
    rule,
    summary:
      rule === "request_too_large"
        ? `The request asks for ${what} tokens, more than the ${limit} of ` +
          `${wholeTime(guarantee)}${ofWhom}.${weighed}`
        : `${used - debtOf} of ${granted} ${dimension}${ofWhom} were used in the last ${seconds} s.` +
          `${wanted}${owed}${weighed}${degraded}`,
    ...modelOf(refused),
    window: {
      scopeId,
      limit: granted,
      used,
      requested: asked,
      freeAt: freeAfterMs === undefined ? undefined : now + freeAfterMs,
    },
  };
}

/** How the plan's weights made the numbers. */
function weighing({ weights }: RefusedAdmission): string {
  if (weights === undefined) return "";
  return (
    `These are tokens as the plan weighs them (token_weights): here a token of input counts up to ` +
    `${weights.input / 100}, and one of output ${weights.output / 100}. `
  );
}

function modelOf({ request: { model } }: RefusedAdmission): { readonly model?: string } {
  return model === undefined ? {} : { model: model.alias };
}

function wholeTime(guarantee: Guarantee | undefined): string {
  return guarantee === undefined ? "a whole minute" : `${guarantee.seconds} s of the guarantee`;
}

function brokenRule(
  { dimension, retryAfterMs }: Refused,
  guarantee: Guarantee | undefined,
): RefusalRule {
  if (dimension === "requests" && guarantee === undefined) return "requests_per_minute";
  if (retryAfterMs === undefined) return "request_too_large";
  return guarantee === undefined ? "tokens_per_minute" : "guarantee_used_up";
}
