import { GatewayError } from "../domain/errors/gateway-error.ts";
import { type Caller, type Key, mayUseModel } from "../domain/keys/key.ts";
import type { Environment, Model, Target } from "../domain/model.ts";
import type { BudgetScope, Charge } from "../domain/money/budget.ts";
import type { Calendar } from "../domain/money/calendar.ts";
import { provisionedTier, ratesOf } from "../domain/money/cost.ts";
import type { PriceBook, Rates } from "../domain/money/price.ts";
import { askedTier } from "../domain/money/service-tier.ts";
import type { LimitStore } from "../store/limits/limit-store.ts";

/** What a call under budgets that refuse was admitted with. */
export interface Budgeted {
  readonly charge: Charge;
  readonly reservedNano: number;
  readonly arrivedAt: number;
  readonly serviceTier: string | undefined;
  /** The reservation is for the pool of the key's units: no other target may serve the call. */
  readonly isOfPool: boolean;
}

export interface MoneyServices {
  readonly prices: PriceBook;
  readonly calendar: Calendar;
}

export interface MoneyRequest {
  readonly call: {
    readonly caller: Pick<Caller, "budgets"> & {
      readonly key: Pick<Key, "allowedModels" | "provisionedPool">;
    };
    readonly environment: Pick<Environment, "models">;
  };
  readonly model: Model;
  /** Milliseconds since the epoch, as in the row of the call. */
  readonly arrivedAt: number;
  readonly work: PricedWork;
}

/** What of a request decides its price, beside tokens. */
export interface PricedWork {
  /** How many inputs, each of at most a context window, upstreams may read. */
  readonly inputs: number;
  /** Images among the inputs; undefined: none. Some models have a price of an image. */
  readonly images?: number | undefined;
  /** That the caller asks for. */
  readonly serviceTier?: string | undefined;
  /** Whether a part of the input is to be kept for an hour, at a price of its own. */
  isKeptAnHour?(): boolean;
}

/** The budgets that refuse, in the periods in which the call arrived. Undefined: it is under none. */
export function budgetsOf(
  { call, model, arrivedAt }: MoneyRequest,
  { calendar }: MoneyServices,
): readonly BudgetScope[] | undefined {
  const { budgets } = call.caller;
  if (budgets === undefined || budgets.length === 0) return undefined;
  const scopes: BudgetScope[] = [];
  for (const budget of budgets) {
    if (budget.model !== undefined && budget.model !== model.alias) continue;
    const period = calendar.periodAt(budget, arrivedAt);
    if (arrivedAt >= period.startsAt) scopes.push({ budget, period });
  }
  return scopes.length === 0 ? undefined : scopes;
}

export function budgetedOf(
  { arrivedAt, work }: MoneyRequest,
  charge: Charge,
  { reserveNano: reservedNano = 0, isOfPool = false }: Reserved,
): Budgeted {
  const serviceTier = askedTier(work.serviceTier);
  return { charge, reservedNano, arrivedAt, serviceTier, isOfPool };
}

interface Reserved {
  readonly reserveNano: number | undefined;
  readonly isOfPool?: boolean;
}

export function chargeOf(
  budgets: readonly BudgetScope[],
  { process }: Pick<LimitStore, "process">,
): Charge {
  return { process, budgetIds: budgets.map(({ budget }) => budget.id) };
}

export interface ReservedTokens {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/**
 * The most that so many tokens cost at one of the targets that may serve the call. `ownPool`: that of a
 * call within its guarantee, which costs nothing there unless a price says otherwise. Throws 403 when no
 * target may serve it, since none has a price, and 503 while that is not known of all.
 */
export function dearestNano(
  request: MoneyRequest,
  tokens: ReservedTokens,
  { prices, ownPool }: { readonly prices: PriceBook; readonly ownPool?: string | undefined },
): number {
  const { call, model } = request;
  let dearest: number | undefined;
  let areKnown = true;
  const look = (of: Model): void => {
    const billed = billedBy(of, tokens, request.work);
    for (const target of of.targets) {
      areKnown &&= prices.isPublished(target.id, request.arrivedAt);
      const isProvisioned = ownPool !== undefined && target.pool === ownPool;
      const nano = nanoAt(target, { request, tokens: billed, prices, isProvisioned });
      if (nano !== undefined) dearest = Math.max(dearest ?? 0, nano);
    }
  };
  look(model);
  for (const alias of model.fallbacks ?? []) {
    const fallback = call.environment.models.get(alias);
    if (fallback !== undefined && mayUseModel(call.caller.key, alias)) look(fallback);
  }
  if (dearest === undefined) throw areKnown ? notPriced(model) : pricesUnavailable(model);
  return dearest;
}

/** The same at the pool of the key's units alone. */
export function provisionedNano(
  request: MoneyRequest,
  tokens: ReservedTokens,
  prices: PriceBook,
): number {
  const { provisionedPool } = request.call.caller.key;
  let dearest = 0;
  const billed = billedBy(request.model, tokens, request.work);
  for (const target of request.model.targets) {
    if (target.pool !== provisionedPool) continue;
    const nano = nanoAt(target, { request, tokens: billed, prices, isProvisioned: true });
    dearest = Math.max(dearest, nano ?? 0);
  }
  return dearest;
}

/** A model reads no more than its window of each input, and no more is billed: see `boundsOf`. */
function billedBy(
  { contextWindow }: Model,
  { inputTokens, outputTokens }: ReservedTokens,
  { inputs }: PricedWork,
): ReservedTokens {
  return { inputTokens: Math.min(inputTokens, contextWindow * inputs), outputTokens };
}

/** Whether a target has a price for a call; without one, a call under budgets does not use it. */
export function isPriced(
  targetId: string,
  { arrivedAt, serviceTier }: Pick<Budgeted, "arrivedAt" | "serviceTier">,
  prices: PriceBook,
): boolean {
  const found = prices.find(targetId, arrivedAt);
  return found !== undefined && ratesOf(0, found.price, serviceTier) !== undefined;
}

interface Pricing {
  readonly request: MoneyRequest;
  readonly tokens: ReservedTokens;
  readonly prices: PriceBook;
  readonly isProvisioned: boolean;
}

/** Undefined: the target has no price for it. */
function nanoAt(
  target: Target,
  { request, tokens, prices, isProvisioned }: Pricing,
): number | undefined {
  const price = prices.find(target.id, request.arrivedAt)?.price;
  if (price === undefined) return isProvisioned ? 0 : undefined;
  const { inputTokens } = tokens;
  const asked = askedTier(request.work.serviceTier);
  const tier = isProvisioned ? provisionedTier : asked;
  const { work } = request;
  const nano = nanoOf(ratesOf(inputTokens, price, tier), tokens, work);
  if (nano === undefined || isProvisioned) return nano;
  // The provider may serve it in the standard tier instead.
  const standard =
    asked === undefined ? 0 : nanoOf(ratesOf(inputTokens, price, undefined), tokens, work);
  const ofImages = (work.images ?? 0) * (price.image ?? 0) * nanoPerMicro;
  return Math.min(Number.MAX_SAFE_INTEGER, Math.max(nano, standard ?? 0) + ofImages);
}

/** All input at the dearest rate that may apply to it: a provider may write it to its cache unasked. */
function nanoOf(
  rates: Rates | undefined,
  { inputTokens, outputTokens }: ReservedTokens,
  work: PricedWork,
): number | undefined {
  if (rates === undefined) return undefined;
  const { input, cache_write: written = 0, cache_write_1h: written1h = 0, output } = rates;
  if (input === undefined || (output === undefined && outputTokens > 0)) return undefined;
  const ofInput = Math.max(input, written, work.isKeptAnHour?.() === true ? written1h : 0);
  const pico = inputTokens * ofInput + outputTokens * (output ?? 0);
  return Math.min(Number.MAX_SAFE_INTEGER, Math.ceil(pico / picoPerNano));
}

const picoPerNano = 1_000;
const nanoPerMicro = 1_000;

function pricesUnavailable({ alias }: Model): GatewayError {
  return new GatewayError("model_unavailable", {
    message:
      "The prices that the budgets of your API key need are not known at the moment. Please retry " +
      "your request.",
    headers: { "retry-after": "1" },
    explanation: {
      rule: "budgets_unavailable",
      model: alias,
      summary:
        "The key is under a budget that refuses calls, and prices of the model are not published yet: " +
        "that takes a second, and needs the database. `sluice status` shows whether it is connected.",
    },
  });
}

function notPriced({ alias }: Model): GatewayError {
  return new GatewayError("model_not_priced", {
    message:
      `The model \`${alias}\` has no price, and a budget limits what this API key may spend. Please ` +
      "use another model, or ask the operator of the gateway to set its price.",
    param: "model",
    explanation: {
      rule: "model_not_priced",
      model: alias,
      summary:
        `No target of model ${alias} has a price, and the key is under a budget that refuses calls. ` +
        "Set prices in the section `prices` of the configuration; `sluice prices list` shows them.",
    },
  });
}
