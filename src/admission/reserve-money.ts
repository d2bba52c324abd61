import { GatewayError } from "../domain/errors/gateway-error.ts";
import { type Caller, type Key, mayUseModel } from "../domain/keys/key.ts";
import type { Environment, Model, Target } from "../domain/model.ts";
import { type BudgetScope, type Charge, scopeIdOf } from "../domain/money/budget.ts";
import type { Calendar } from "../domain/money/calendar.ts";
import { type CacheTime, inputClasses, missingPrices } from "../domain/money/billed-classes.ts";
import { provisionedTier, ratesOf } from "../domain/money/cost.ts";
import type { PriceBook } from "../domain/money/price.ts";
import { askedTier } from "../domain/money/service-tier.ts";
import type { LimitStore } from "../store/limits/limit-store.ts";

/** What a call under budgets that refuse was admitted with. */
export interface Budgeted {
  readonly charge: Charge;
  readonly reservedNano: number;
  readonly request: MoneyRequest;
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
  /** The end user, as budgets count it. Undefined: there is none, or no budget for each. */
  readonly spender?: string | undefined;
}

/** What of a request decides its price, beside tokens. */
export interface PricedWork {
  /** How many inputs, each of at most a context window, upstreams may read. */
  readonly inputs: number;
  /** Images among the inputs; undefined: none. Some models have a price of an image. */
  readonly images?: number | undefined;
  /** That the caller asks for. */
  readonly serviceTier?: string | undefined;
  /** For how long parts of the input are to be kept in a cache, at prices of their own. */
  cacheTime?(): CacheTime;
}

/** The budgets that refuse, in the periods in which the call arrived. Undefined: it is under none. */
export function budgetsOf(
  { call, model, arrivedAt, spender }: MoneyRequest,
  { calendar, limits }: Pick<MoneyServices, "calendar"> & { limits: Pick<LimitStore, "placeOf"> },
): readonly BudgetScope[] | undefined {
  const { budgets } = call.caller;
  if (budgets === undefined || budgets.length === 0) return undefined;
  const scopes: BudgetScope[] = [];
  for (const budget of budgets) {
    if (budget.model !== undefined && budget.model !== model.alias) continue;
    const isForEach = budget.eachEndUser === true;
    if (isForEach && spender === undefined) continue;
    const period = calendar.periodAt(budget, arrivedAt);
    if (arrivedAt < period.startsAt) continue;
    scopes.push(
      isForEach ? limits.placeOf({ budget, period, endUser: spender }) : { budget, period },
    );
  }
  return scopes.length === 0 ? undefined : scopes;
}

/** Undefined: it is under no budget. */
export function budgetedOf(
  request: MoneyRequest,
  { budgets, reserveNano: reservedNano = 0, isOfPool = false }: Reserved,
  { process }: Pick<LimitStore, "process">,
): Budgeted | undefined {
  if (budgets === undefined) return undefined;
  const charge = { process, budgetIds: budgets.map(scopeIdOf) };
  return { charge, reservedNano, request, isOfPool };
}

interface Reserved {
  readonly budgets: readonly BudgetScope[] | undefined;
  readonly reserveNano: number | undefined;
  readonly isOfPool?: boolean;
}

export interface ReservedTokens {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

interface ReserveTerms {
  readonly prices: PriceBook;
  readonly ownPool?: string | undefined;
  readonly isOfPool?: boolean;
}

/**
 * The most that so many tokens cost at one of the targets that may serve the call. `ownPool`: that of a
 * call within its guarantee, which costs nothing there unless a price says otherwise. `isOfPool`: no
 * other target may serve it. Throws 403 when no target may serve it, since none has all prices, and 503 while that is not known of all.
 */
export function dearestNano(
  request: MoneyRequest,
  tokens: ReservedTokens,
  { prices, ownPool, isOfPool = false }: ReserveTerms,
): number {
  const { call, model } = request;
  let dearest: number | undefined;
  const unpriced: Unpriced[] = [];
  const look = (of: Model): void => {
    for (const target of of.targets) {
      const isProvisioned = ownPool !== undefined && target.pool === ownPool;
      if (isOfPool && !isProvisioned) continue;
      const cost = mostAt({ target, model: of }, request, { tokens, prices, isProvisioned });
      if (typeof cost === "number") dearest = Math.max(dearest ?? 0, cost);
      else unpriced.push({ target, missing: cost });
    }
  };
  look(model);
  if (isOfPool) return dearest ?? 0;
  for (const alias of model.fallbacks ?? []) {
    const fallback = call.environment.models.get(alias);
    if (fallback !== undefined && mayUseModel(call.caller.key, alias)) look(fallback);
  }
  if (dearest !== undefined) return dearest;
  const areKnown = unpriced.every(({ target: { id } }) =>
    prices.isPublished(id, request.arrivedAt),
  );
  throw areKnown ? notPriced(model, unpriced) : pricesUnavailable(model);
}

/**
 * Such as `no price of cache_read`: what a target lacks for a call, because a call under budgets uses
 * only those at which its cost will be known. Undefined: nothing.
 */
export function missingAt(
  at: ModelTarget,
  request: MoneyRequest,
  prices: PriceBook,
): string | undefined {
  const tokens = { inputTokens: 0, outputTokens: 0 };
  const cost = mostAt(at, request, { tokens, prices, isProvisioned: false });
  return typeof cost === "string" ? cost : undefined;
}

interface ModelTarget {
  readonly target: Target;
  readonly model: Model;
}

interface Pricing {
  readonly tokens: ReservedTokens;
  readonly prices: PriceBook;
  readonly isProvisioned: boolean;
}

/**
 * The most that so many tokens cost, or what has no price. A model reads no more than its window of
 * each input, and no more is billed: see `boundsOf`.
 */
function mostAt(
  { target, model }: ModelTarget,
  { work, arrivedAt }: MoneyRequest,
  { tokens, prices, isProvisioned }: Pricing,
): number | string {
  const price = prices.find(target.id, arrivedAt)?.price;
  if (price === undefined) return isProvisioned ? 0 : "no price";
  const hasOutput = model.kind === "chat";
  const asked = { tier: askedTier(work.serviceTier), cacheTime: work.cacheTime?.(), hasOutput };
  const missing = isProvisioned ? [] : missingPrices(price, target.promptCache, asked);
  if (missing.length > 0) return `no price of ${missing.join(", ")}`;
  const inputTokens = Math.min(tokens.inputTokens, model.contextWindow * work.inputs);
  let pico = 0;
  // The provider may serve it in the standard tier instead.
  for (const tier of isProvisioned ? [provisionedTier] : [asked.tier, undefined]) {
    const rates = ratesOf(inputTokens, price, tier) ?? {};
    let ofInput = 0;
    for (const name of inputClasses(target.promptCache, asked, rates)) {
      ofInput = Math.max(ofInput, rates[name] ?? 0);
    }
    pico = Math.max(pico, inputTokens * ofInput + tokens.outputTokens * (rates.output ?? 0));
  }
  const ofImages = isProvisioned ? 0 : (work.images ?? 0) * (price.image ?? 0) * nanoPerMicro;
  return Math.min(Number.MAX_SAFE_INTEGER, Math.ceil(pico / picoPerNano) + ofImages);
}

const picoPerNano = 1_000;
const nanoPerMicro = 1_000;

interface Unpriced {
  readonly target: Target;
  readonly missing: string;
}

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

function notPriced({ alias }: Model, unpriced: readonly Unpriced[]): GatewayError {
  // Account holders read it, who see no models of upstreams.
  const lacks = unpriced.map(({ target, missing }) => `${missing} at ${target.upstream}`);
  const what = unpriced[0]?.missing ?? "no price";
  return new GatewayError("model_not_priced", {
    message:
      `The model \`${alias}\` has ${what}, and a budget limits what this API key may spend. Please ` +
      "use another model, or ask the operator of the gateway to set its price.",
    param: "model",
    explanation: {
      rule: "model_not_priced",
      model: alias,
      summary:
        "The key is under a budget that refuses calls, and not all that this one may be billed has a " +
        `price: ${lacks.join("; ")}. Set it in \`price\` of the target or in the section \`prices\` of the ` +
        "configuration, 0 if it costs nothing. Write the whole price there, such as `price: { input: 0.2, " +
        "cache_read: 0.1, output: 0.6 }` in USD per 1M tokens: it replaces the listed one, which " +
        "`sluice prices list` shows.",
    },
  });
}
