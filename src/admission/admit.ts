import { GatewayError } from "../domain/errors/gateway-error.ts";
import type { Clock } from "../domain/clock.ts";
import type { CapacityClass } from "../domain/usage/usage.ts";
import {
  type CountedRequest,
  type LimitScope,
  type LimitState,
  type RequestKind,
} from "../domain/limits/limit-scope.ts";
import type {
  CountDecision,
  LimitDecision,
  LimitRequest,
  LimitStore,
} from "../store/limits/limit-store.ts";
import { admissionRefusal, type RefusedAdmission } from "./admission-refusal.ts";
import type { Call } from "../snapshot/call.ts";
import { asideScopes, type Guarantee, guaranteeOf, keyScopeId, planScopes } from "./plan-scopes.ts";
import {
  type Budgeted,
  budgetedOf,
  budgetsOf,
  dearestNano,
  type MoneyRequest,
  type MoneyServices,
  type ReservedTokens,
} from "./reserve-money.ts";
import { type CallWeights } from "../domain/limits/token-weights.ts";
import {
  planWeights,
  type ReservationRequest,
  reservationUnder,
  type TokenReservation,
} from "./reserve-tokens.ts";
import type { Model } from "../domain/model.ts";
import type { BudgetScope } from "../domain/money/budget.ts";
import { whenKnown } from "../domain/waiting/wait.ts";

/** The decision that a call may run: what was reserved, and in which class. */
export interface Admission {
  readonly model: Model;
  /** Without weights. */
  readonly reservedTokens: number;
  /** Those of what it counts in its limits; undefined: each token counts one. */
  readonly weights?: CallWeights | undefined;
  /** See `TokenReservation`. */
  readonly outputCap: number | undefined;
  readonly capacityClass: CapacityClass;
  readonly state: LimitState;
  /** Undefined: no budget refuses calls of the key. */
  readonly budgeted?: Budgeted | undefined;
}

export interface AdmissionRequest extends ReservationRequest, MoneyRequest {
  readonly call: Call;
  readonly model: Model;
  /** Whether the input was counted; otherwise its tokens are an estimate. */
  readonly isCounted?: boolean;
  /** The limits of the end user; undefined: it has none. */
  readonly endUser?: readonly LimitScope[] | undefined;
}

interface CountServices {
  readonly limits: LimitStore;
  readonly clock: Clock;
}

interface AdmissionServices extends CountServices, MoneyServices {}

/**
 * Reserves what a call needs, in its guarantee or else under the plan of the key, or throws 429 or
 * 503 and reserves nothing. A call within the guarantee costs the plan neither tokens nor a request.
 */
export function admit(
  request: AdmissionRequest,
  services: AdmissionServices,
): Admission | Promise<Admission> {
  const guarantee = wantedGuarantee(request);
  if (guarantee !== undefined) return admitGuaranteed(request, guarantee, services);
  if (request.call.options.capacity === "provisioned-only") throw noGuarantee(request);
  return admitUnderPlan(request, services);
}

async function admitGuaranteed(
  request: AdmissionRequest,
  guarantee: Guarantee,
  services: AdmissionServices,
): Promise<Admission> {
  const { call } = request;
  const reservation = reservationUnder(guarantee.tokens, request, undefined);
  const isPoolOnly = call.options.capacity === "provisioned-only";
  const terms = { guarantee, reservation, budgets: budgetsOf(request, services) };
  let tried = await tryGuarantee(request, { ...terms, isOfPool: isPoolOnly }, services);
  if (!tried.decision.isAdmitted && tried.decision.budgets !== undefined && !isPoolOnly) {
    // Other targets would cost too much, or nobody knows. What the units pay is not refused.
    tried = await tryGuarantee(request, { ...terms, isOfPool: true }, services);
  }
  const { decision } = tried;
  if (decision.isAdmitted) {
    if (call.counted !== undefined) await services.limits.uncount(call.counted);
    const { state, wouldRefuse } = decision;
    if (wouldRefuse !== undefined) {
      const { tokens: askedTokens } = reservation;
      tellAudited({ request, decision: wouldRefuse, askedTokens }, services);
    }
    const budgeted = budgetedOf(request, tried, services.limits);
    return admissionOf(request, reservation, { state, capacityClass: "provisioned", budgeted });
  }
  const now = services.clock.now();
  const { endUser = [] } = request;
  const isOfGuarantee = !endUser.some(({ id }) => !decision.isAdmitted && id === decision.scopeId);
  const guaranteed = {
    request,
    guarantee: isOfGuarantee ? guarantee : undefined,
    decision,
    askedTokens: reservation.tokens,
    now,
  };
  if (isPoolOnly) throw await refusalOf(guaranteed, services);
  return admitUnderPlan(request, services, guaranteed);
}

interface GuaranteeTerms {
  readonly guarantee: Guarantee;
  readonly reservation: TokenReservation;
  readonly budgets: readonly BudgetScope[] | undefined;
  readonly isOfPool: boolean;
}

async function tryGuarantee(
  request: AdmissionRequest,
  { guarantee: { scopes }, reservation, budgets, isOfPool }: GuaranteeTerms,
  { limits, prices }: AdmissionServices,
) {
  const { id: callId, caller } = request.call;
  const { tokens, mostTokens } = reservation;
  const pools = { prices, ownPool: caller.key.provisionedPool, isOfPool };
  const reserveNano = budgets && dearestNano(request, billedOf(request, reservation), pools);
  const all = request.endUser === undefined ? scopes : [...scopes, ...request.endUser];
  const asked = { callId, scopes: all, tokens, mostTokens, budgets, reserveNano };
  return { budgets, reserveNano, isOfPool, decision: await limits.acquire(asked) };
}

/** `guaranteed`: why the call is not within its guarantee, if it has one. */
function admitUnderPlan(
  request: AdmissionRequest,
  services: AdmissionServices,
  guaranteed?: RefusedAdmission,
): Admission | Promise<Admission> {
  const { call } = request;
  const weights = planWeights(request);
  const reservation = reservationUnder(tokenLimitOf(request), request, weights);
  const { tokens, mostTokens } = reservation;
  const { counted } = call;
  const { endUser } = request;
  const { limits, prices } = services;
  const ofPlan = counted?.scopes ?? planScopes(call);
  const scopes = endUser === undefined ? ofPlan : [...ofPlan, ...endUser];
  const budgets = budgetsOf(request, services);
  const reserveNano = budgets && dearestNano(request, billedOf(request, reservation), { prices });
  const decide = (decision: LimitDecision): Admission | Promise<Admission> => {
    if (decision.isAdmitted) {
      const { state, wouldRefuse } = decision;
      if (wouldRefuse !== undefined) {
        tellAudited({ request, decision: wouldRefuse, askedTokens: tokens, weights }, services);
      }
      const capacityClass = guaranteed === undefined ? "on-demand" : "spillover";
      const budgeted = budgetedOf(request, { budgets, reserveNano }, limits);
      return admissionOf(request, reservation, { state, capacityClass, budgeted, weights });
    }
    const now = services.clock.now();
    const refused = { request, decision, askedTokens: tokens, weights, now };
    return refusalOf(soonerOf(refused, guaranteed), services).then((error) => {
      throw error;
    });
  };
  const asked = { callId: call.id, scopes, tokens, mostTokens, budgets, reserveNano };
  const deciding =
    endUser === undefined || counted === undefined
      ? limits.acquire({ ...asked, counted })
      : countedForEndUser(endUser, { ...asked, counted }, limits);
  return whenKnown(deciding, decide);
}

/** The request of the key was counted on arrival; that of its end user is counted here. */
function countedForEndUser(
  endUser: readonly LimitScope[],
  asked: LimitRequest,
  limits: LimitStore,
): LimitDecision | Promise<LimitDecision> {
  return whenKnown(limits.count(endUser), (own) => {
    if (!own.isAdmitted) return own;
    return whenKnown(limits.acquire(asked), (decision) => {
      if (!decision.isAdmitted) return whenKnown(limits.uncount(own.counted), () => decision);
      const { state, wouldRefuse = own.wouldRefuse } = decision;
      return { isAdmitted: true, state, wouldRefuse };
    });
  });
}

/** Tells what limits in audit would have refused. */
function tellAudited(
  refused: Omit<RefusedAdmission, "now"> & { readonly request: Pick<AdmissionRequest, "call"> },
  { clock }: CountServices,
): void {
  const now = clock.now();
  refused.request.call.origin?.wouldBeRefused(admissionRefusal({ ...refused, now }));
}

/** The smallest limit on the tokens of the plan and of the end user. */
function tokenLimitOf({ call, endUser = [] }: Pick<AdmissionRequest, "call" | "endUser">): number {
  return endUser.reduce(
    (least, { unit, limit }) => (unit === "tokens" ? Math.min(least, limit) : least),
    call.caller.limits.tokensPerMinute,
  );
}

/**
 * A call that can never fit still costs a request. A call that may be retried gets its request
 * back, at most as often per minute as the plan has requests, because each body was read.
 */
async function refusalOf(
  refused: RefusedAdmission,
  services: AdmissionServices,
): Promise<GatewayError> {
  const { call } = refused.request;
  if (refused.decision.retryAfterMs !== undefined && call.counted !== undefined) {
    const { key, limits } = call.caller;
    const id = `early/${keyScopeId(key.limitScope)}`;
    const limit = limits.requestsPerMinute;
    const owner = key.accountId;
    const early = { id, unit: "requests", window: "minute", limit, owner } as const;
    const { isAdmitted } = await services.limits.count([early]);
    if (isAdmitted) await services.limits.uncount(call.counted);
  }
  return admissionRefusal(refused);
}

/** Of the plan's and the guarantee's refusal, the one that ends first. */
function soonerOf(plan: RefusedAdmission, guarantee: RefusedAdmission | undefined) {
  const waitOf = ({ decision }: RefusedAdmission): number => decision.retryAfterMs ?? Infinity;
  return guarantee !== undefined && waitOf(guarantee) < waitOf(plan) ? guarantee : plan;
}

function admissionOf(
  { model, estimate }: AdmissionRequest,
  { outputTokens, outputCap }: TokenReservation,
  {
    capacityClass,
    state,
    budgeted,
    weights,
  }: Omit<Admission, "model" | "reservedTokens" | "outputCap">,
): Admission {
  const reservedTokens = estimate.inputTokens + outputTokens;
  return { model, reservedTokens, weights, outputCap, capacityClass, state, budgeted };
}

function billedOf(
  { estimate }: AdmissionRequest,
  { outputTokens }: TokenReservation,
): ReservedTokens {
  return { inputTokens: estimate.inputTokens, outputTokens };
}

/** False when the request is larger than every limit it may be under: no waiting would help. */
export function canEverFit(request: AdmissionRequest): boolean {
  const fits = (limit: number, weights?: CallWeights): boolean =>
    reservationUnder(limit, request, weights).tokens <= limit;
  const guarantee = wantedGuarantee(request);
  if (guarantee !== undefined && fits(guarantee.tokens)) return true;
  const isPoolOnly = request.call.options.capacity === "provisioned-only";
  return !isPoolOnly && fits(tokenLimitOf(request), planWeights(request));
}

function wantedGuarantee({ call, model }: AdmissionRequest): Guarantee | undefined {
  if (call.options.capacity === "on-demand-only") return undefined;
  return guaranteeOf(call, model);
}

function noGuarantee({ call, model }: AdmissionRequest): GatewayError {
  return new GatewayError("invalid_value", {
    message:
      `Invalid header 'x-sluice-capacity': application ${call.caller.key.application} has no ` +
      `provisioned throughput for the model \`${model.alias}\`; use auto.`,
    param: "x-sluice-capacity",
  });
}

type ArrivingRequest = Pick<Call, "caller" | "environment" | "snapshot" | "origin">;

/**
 * Counts a request of a key on arrival, independent of its outcome. Throws 429, or 503 when nobody
 * can decide. Undefined: the plan has no request left, but the key has provisioned throughput, whose
 * requests are not limited.
 */
export function countRequest(
  kind: RequestKind,
  request: ArrivingRequest,
  services: CountServices,
): CountedRequest | undefined | Promise<CountedRequest | undefined> {
  const hasUnits = kind === "call" && request.caller.key.provisionedUnits > 0;
  const refusalBy = (decision: RefusedAdmission["decision"]): GatewayError => {
    const now = services.clock.now();
    return admissionRefusal({ request: { call: request }, decision, askedTokens: 0, now });
  };
  const countedOf = (decision: CountDecision): CountedRequest | undefined | Promise<undefined> => {
    if (decision.isAdmitted) {
      const { counted, wouldRefuse } = decision;
      if (wouldRefuse === undefined) return counted;
      // Whether it is within the guarantee is not known before its model.
      if (hasUnits) return whenKnown(services.limits.uncount(counted), () => undefined);
      request.origin?.wouldBeRefused(refusalBy(wouldRefuse));
      return counted;
    }
    if (hasUnits) return undefined;
    throw refusalBy(decision);
  };
  const scopes = kind === "call" ? planScopes(request) : asideScopes(kind, request);
  return whenKnown(services.limits.count(scopes), countedOf);
}
