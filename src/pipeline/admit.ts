import { GatewayError } from "../domain/gateway-error.ts";
import type { Clock } from "../domain/clock.ts";
import type { RefusalExplanation, RefusalRule, WindowSlot } from "../domain/refusal.ts";
import type { CapacityClass } from "../domain/usage.ts";
import { formatGoDuration, rateLimitHeaders, retryHeaders } from "../limits/headers.ts";
import type { LimitState } from "../domain/limit-state.ts";
import type { LimitDecision, LimitScope, LimitStore } from "../storage/store.ts";
import type { Call } from "./call.ts";
import { guaranteeOf, type Guarantee } from "./capacity/guarantee.ts";
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

/**
 * Reserves what a call needs, in its guarantee or else under the plan of the key, or throws 429 and
 * charges nothing. What the guarantee takes is not charged to the plan at all.
 */
export async function admit(
  request: AdmissionRequest,
  services: AdmissionServices,
): Promise<Admission> {
  const { call, resolved } = request;
  const guarantee = wantedGuarantee(request);
  const used = guarantee && (await tryGuarantee(request, guarantee, services));
  if (used !== undefined && "admission" in used) return used.admission;
  const isGuaranteedAlone = call.options.capacity === "provisioned-only";
  if (isGuaranteedAlone) throw used === undefined ? noGuarantee(request) : refusal(used.refused);
  const tokens = tokensToReserve(request, call.caller.limits.tokensPerMinute);
  const decision = await acquireOfPlan(request, { callId: call.id, tokens }, services);
  if (decision.isAdmitted) {
    const capacityClass = used === undefined ? "on-demand" : "spillover";
    return { ...resolved, reservedTokens: tokens, capacityClass, state: decision.state };
  }
  const refused = { request, decision, askedTokens: tokens, now: services.clock.now() };
  throw refusal(soonerOf(refused, used?.refused));
}

/** Of the plan's refusal and the guarantee's, the one that ends first; waiting is for either. */
function soonerOf(plan: RefusedAdmission, guarantee: RefusedAdmission | undefined) {
  const waitOf = ({ decision }: RefusedAdmission): number => decision.retryAfterMs ?? Infinity;
  return guarantee !== undefined && waitOf(guarantee) < waitOf(plan) ? guarantee : plan;
}

/** Charges a request of the key and no tokens, for work before admission. Throws 429. */
export async function chargeRequest(
  request: AdmissionRequest,
  services: AdmissionServices,
): Promise<void> {
  const callId = `${request.call.id}/count`;
  const decision = await acquireOfPlan(request, { callId, tokens: 0 }, services);
  if (decision.isAdmitted) {
    await services.limits.settle(callId, 0);
    return;
  }
  throw refusal({ request, decision, askedTokens: 0, now: services.clock.now() });
}

async function tryGuarantee(
  request: AdmissionRequest,
  guarantee: Guarantee,
  { limits, clock }: AdmissionServices,
): Promise<{ readonly admission: Admission } | { readonly refused: RefusedAdmission }> {
  const { call, resolved } = request;
  const tokens = tokensToReserve(request, guarantee.tokens);
  const decision = await limits.acquire({ callId: call.id, scopes: [guarantee.scope], tokens });
  if (!decision.isAdmitted) {
    return { refused: { request, guarantee, decision, askedTokens: tokens, now: clock.now() } };
  }
  const { state } = decision;
  return {
    admission: { ...resolved, reservedTokens: tokens, capacityClass: "provisioned", state },
  };
}

function acquireOfPlan(
  { call }: AdmissionRequest,
  wanted: { readonly callId: string; readonly tokens: number },
  { limits }: AdmissionServices,
): LimitDecision | Promise<LimitDecision> {
  const { key, limits: keyLimits } = call.caller;
  const scope: LimitScope = { id: keyScopeId(key.id), limits: keyLimits };
  return limits.acquire({ ...wanted, scopes: [scope] });
}

/** The scope in which a key's requests and tokens are counted, whatever secret they came with. */
export function keyScopeId(keyId: string): string {
  return `key:${keyId}`;
}

/** False when the request is larger than every limit it may be under: no waiting would help. */
export function canEverFit(request: AdmissionRequest): boolean {
  const fits = (limit: number): boolean => tokensToReserve(request, limit) <= limit;
  const guarantee = wantedGuarantee(request);
  if (guarantee !== undefined && fits(guarantee.tokens)) return true;
  const { options, caller } = request.call;
  return options.capacity !== "provisioned-only" && fits(caller.limits.tokensPerMinute);
}

function wantedGuarantee({ call, resolved }: AdmissionRequest): Guarantee | undefined {
  if (call.options.capacity === "on-demand-only") return undefined;
  return guaranteeOf(call, resolved.model);
}

/**
 * A guessed output is clamped to what the limit leaves beside the input; otherwise a key with a
 * small limit would never get a first answer.
 */
function tokensToReserve({ estimate, isCapped }: AdmissionRequest, limit: number): number {
  const { inputTokens, outputTokens } = estimate;
  if (isCapped) return inputTokens + outputTokens;
  return inputTokens + Math.min(outputTokens, Math.max(0, limit - inputTokens));
}

function noGuarantee({ call, resolved }: AdmissionRequest): GatewayError {
  return new GatewayError("invalid_value", {
    message:
      `Invalid header 'x-sluice-capacity': application ${call.caller.key.application} has no ` +
      `provisioned throughput for the model \`${resolved.model.alias}\`; use auto.`,
    param: "x-sluice-capacity",
  });
}

interface RefusedAdmission {
  readonly request: AdmissionRequest;
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

function refusal(refused: RefusedAdmission): GatewayError {
  const { request, guarantee, decision } = refused;
  const { dimension, retryAfterMs, state } = decision;
  const isTokens = dimension === "tokens";
  const limit = isTokens ? state.limits.tokensPerMinute : state.limits.requestsPerMinute;
  const used = limit - (isTokens ? state.remainingTokens : state.remainingRequests);
  const asked = isTokens ? refused.askedTokens : 1;
  const subject =
    `${request.resolved.model.alias} in application ${request.call.caller.key.application} on ` +
    (guarantee !== undefined
      ? `provisioned tokens per ${guarantee.seconds} s`
      : isTokens
        ? "tokens per min (TPM)"
        : "requests per min (RPM)");
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
  { request, guarantee, decision, now }: RefusedAdmission,
  { limit, used, asked }: BrokenLimit,
): RefusalExplanation {
  const { scopeId, dimension, freeAfterMs, slots } = decision;
  const { caller, environment } = request.call;
  const { key } = caller;
  const rule = brokenRule(decision, guarantee);
  const seconds = guarantee?.seconds ?? 60;
  return {
    rule,
    summary:
      rule === "request_too_large"
        ? `The request asks for ${asked} tokens, more than the ${limit} of ${wholeTime(guarantee)}.`
        : `The last ${seconds} s hold ${used} of ${limit} ${dimension}, and the request asks for ` +
          `${asked}.`,
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
  { dimension, retryAfterMs }: RefusedAdmission["decision"],
  guarantee: Guarantee | undefined,
): RefusalRule {
  if (dimension === "requests" && guarantee === undefined) return "requests_per_minute";
  if (retryAfterMs === undefined) return "request_too_large";
  return guarantee === undefined ? "tokens_per_minute" : "guarantee_used_up";
}
