import { GatewayError } from "../domain/gateway-error.ts";
import type { Clock } from "../domain/clock.ts";
import type { RefusalExplanation, RefusalRule } from "../domain/refusal.ts";
import type { CapacityClass } from "../domain/usage.ts";
import { formatGoDuration, rateLimitHeaders, retryHeaders } from "../limits/headers.ts";
import type { LimitState } from "../domain/limit-state.ts";
import type { LimitDecision, LimitScope, LimitStore } from "../storage/store.ts";
import type { Call } from "./call.ts";
import type { TokenEstimate } from "./estimate.ts";
import type { ResolvedModel } from "./resolve-model.ts";

/** The decision that a call may run: what was reserved, and in which class. */
export interface Admission extends ResolvedModel {
  readonly reservedTokens: number;
  readonly capacityClass: CapacityClass;
  readonly state: LimitState;
}

export interface AdmissionRequest {
  readonly call: Call;
  readonly resolved: ResolvedModel;
  readonly estimate: TokenEstimate;
  /** Whether the caller capped the output: a cap is reserved as it is, a guess gives way. */
  readonly isCapped: boolean;
}

export interface AdmissionServices {
  readonly limits: LimitStore;
  readonly clock: Clock;
}

/** Reserves requests and tokens in all scopes of the key, or throws 429 and charges nothing. */
export async function admit(
  request: AdmissionRequest,
  services: AdmissionServices,
): Promise<Admission> {
  const { call, resolved } = request;
  const tokens = tokensToReserve(request);
  const state = await acquire(request, { callId: call.id, tokens }, services);
  return { ...resolved, reservedTokens: tokens, capacityClass: "on-demand", state };
}

/** Charges a request of the key and no tokens, for work before admission. Throws 429. */
export async function chargeRequest(
  request: AdmissionRequest,
  services: AdmissionServices,
): Promise<void> {
  const callId = `${request.call.id}/count`;
  await acquire(request, { callId, tokens: 0 }, services);
  await services.limits.settle(callId, 0);
}

/** Reserves in all scopes of the key, or throws 429. Returns what is left of the limits. */
async function acquire(
  request: AdmissionRequest,
  wanted: { readonly callId: string; readonly tokens: number },
  { limits, clock }: AdmissionServices,
): Promise<LimitState> {
  const { key, limits: keyLimits } = request.call.caller;
  const scope: LimitScope = { id: keyScopeId(key.id), limits: keyLimits };
  const decision = await limits.acquire({ ...wanted, scopes: [scope] });
  if (decision.isAdmitted) return decision.state;
  throw refusal({ request, decision, askedTokens: wanted.tokens, now: clock.now() });
}

/** The scope in which a key's requests and tokens are counted, whatever secret they came with. */
export function keyScopeId(keyId: string): string {
  return `key:${keyId}`;
}

/** False when the request is larger than a limit itself, so that no waiting would help. */
export function canEverFit(request: AdmissionRequest): boolean {
  return tokensToReserve(request) <= request.call.caller.limits.tokensPerMinute;
}

/**
 * A guessed output is clamped to what the limit leaves beside the input; otherwise a key with a
 * small plan would never get a first answer.
 */
function tokensToReserve({ call, estimate, isCapped }: AdmissionRequest): number {
  const { inputTokens, outputTokens } = estimate;
  if (isCapped) return inputTokens + outputTokens;
  const room = Math.max(0, call.caller.limits.tokensPerMinute - inputTokens);
  return inputTokens + Math.min(outputTokens, room);
}

interface RefusedAdmission {
  readonly request: AdmissionRequest;
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

function refusal(refused: RefusedAdmission): GatewayError {
  const { request, decision } = refused;
  const { dimension, retryAfterMs, state } = decision;
  const isTokens = dimension === "tokens";
  const limit = isTokens ? state.limits.tokensPerMinute : state.limits.requestsPerMinute;
  const used = limit - (isTokens ? state.remainingTokens : state.remainingRequests);
  const asked = isTokens ? refused.askedTokens : 1;
  const subject =
    `${request.resolved.model.alias} in application ${request.call.caller.key.application} on ` +
    (isTokens ? "tokens per min (TPM)" : "requests per min (RPM)");
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

function explain(
  { request, decision, now }: RefusedAdmission,
  { limit, used, asked }: BrokenLimit,
): RefusalExplanation {
  const { scopeId, dimension, freeAfterMs, slots } = decision;
  const { caller, environment } = request.call;
  const { key } = caller;
  const rule = brokenRule(decision);
  return {
    rule,
    summary:
      rule === "request_too_large"
        ? `The request asks for ${asked} tokens, more than the ${limit} of a whole minute.`
        : `The last 60 s hold ${used} of ${limit} ${dimension}, and the request asks for ${asked}.`,
    keyId: key.id,
    publicId: caller.publicId,
    accountId: key.accountId,
    application: key.application,
    environment: environment.name,
    model: request.resolved.model.alias,
    window: {
      scopeId,
      limit,
      used,
      requested: asked,
      freeAt: freeAfterMs === undefined ? undefined : now + freeAfterMs,
      slots,
    },
  };
}

function brokenRule({ dimension, retryAfterMs }: RefusedAdmission["decision"]): RefusalRule {
  if (dimension === "requests") return "requests_per_minute";
  return retryAfterMs === undefined ? "request_too_large" : "tokens_per_minute";
}
