import { GatewayError } from "../domain/errors/gateway-error.ts";
import { rateLimitHeaders, retryHeaders } from "../domain/limits/headers.ts";
import type { Model } from "../domain/model.ts";
import { type BudgetScope, mostEndUsers, otherEndUsers } from "../domain/money/budget.ts";
import { usdOfNano } from "../domain/money/usd.ts";
import type { FullBudget, RefusedByLimit } from "../store/limits/limit-store.ts";
import type { Call } from "../snapshot/call.ts";
import type { OutputExpectation } from "./estimate/estimate.ts";

interface RefusedCall {
  readonly request: {
    readonly call: Pick<Call, "caller">;
    readonly model?: Model;
    readonly output?: OutputExpectation;
  };
  readonly decision: RefusedByLimit;
  readonly now: number;
}

/**
 * 429 for a call that budgets have no room for, and an explanation for who can raise the first one; 503
 * while nobody knows.
 */
export function budgetRefusal(
  { request, decision, now }: RefusedCall,
  [first, ...others]: readonly FullBudget[],
): GatewayError {
  if (first === undefined) return budgetsUnavailable(request.model, decision);
  const { scope, spentNano, reservedNano, requestNano } = first;
  const { budget, period } = scope;
  const { retryAfterMs } = decision;
  const resetsAt = Number.isFinite(period.endsAt)
    ? new Date(period.endsAt).toISOString()
    : undefined;
  const isTooLarge = requestNano > budget.limitNano;
  const isReserved = retryAfterMs !== undefined;
  const name = nameOf(scope, request.call.caller.key.application);
  const capField = request.output?.capField;
  // What others of the account spend is not for every holder of a key.
  const isOwn = budget.keyId !== undefined || budget.applicationId !== undefined;
  const amounts =
    `Limit ${usd(budget.limitNano)}, Spent ${usd(spentNano)}, Reserved ${usd(reservedNano)}, ` +
    `Requested at most ${usd(requestNano)} USD.`;
  const what = isTooLarge
    ? `Request too large for ${name}: what it may cost is more than the whole budget.`
    : isReserved
      ? `What is left of ${name} is reserved for requests under way.`
      : spentNano >= budget.limitNano
        ? `${name.charAt(0).toUpperCase()}${name.slice(1)} is spent.`
        : `Too little of ${name} is left for this request; ${smallerOf(capField)} may fit.`;
  const end = isTooLarge
    ? `Please shorten the input${capField === undefined ? "." : `, or set \`${capField}\` to less.`}`
    : resetsAt === undefined
      ? "It does not reset."
      : `It resets at ${resetsAt}.`;
  const advice = isReserved && !isTooLarge ? "Please try again when they have ended." : end;
  const raiser = raisers[budget.setBy];
  const message = [what, isOwn ? amounts : "", advice, `${raiser} can raise it.`];
  return new GatewayError("budget_exceeded", {
    message: message.filter((part) => part !== "").join(" "),
    limits: {
      state: decision.state,
      nowMs: now,
      ...(!isReserved && !isTooLarge && resetsAt !== undefined && { freeAtMs: period.endsAt }),
    },
    headers: {
      ...rateLimitHeaders(decision.state),
      ...retryHeaders(retryAfterMs),
      ...(isReserved && { "x-should-retry": "true" }),
      ...(resetsAt !== undefined && { "x-sluice-budget-reset": resetsAt }),
    },
    explanation: {
      rule: "budget_exceeded",
      ...(request.model !== undefined && { model: request.model.alias }),
      summary: `${what} ${amounts} ${end} ${raiser} can raise budget ${budget.id}.${moreOf(scope, others)}`,
      budget: {
        id: budget.id,
        scope: budget.keyId === undefined ? (isOwn ? "application" : "account") : "key",
        eachEndUser: scope.endUser !== undefined,
        model: budget.model,
        period: budget.period,
        periodId: period.id,
        timeZone: budget.timeZone,
        limitNano: budget.limitNano,
        spentNano,
        reservedNano,
        requestNano,
        resetsAt: resetsAt === undefined ? undefined : period.endsAt,
        setBy: budget.setBy,
      },
    },
  });
}

const adjectives = { day: "daily", week: "weekly", month: "monthly", total: "total" } as const;

const raisers = {
  operator: "The operator of the gateway",
  account_holder: "A holder of the account",
} as const;

function nameOf({ budget, endUser }: BudgetScope, application: string): string {
  const { keyId, applicationId, model, period } = budget;
  const ofModel = model === undefined ? "" : ` for the model \`${model}\``;
  const ofAll = applicationId === undefined ? "the account" : `application ${application}`;
  const subject = keyId === undefined ? ofAll : "this API key";
  return endUser === undefined
    ? `the ${adjectives[period]} budget of ${subject}${ofModel}`
    : `this end user's ${adjectives[period]} budget under ${subject}${ofModel}`;
}

function smallerOf(capField: string | undefined): string {
  return `one with ${capField === undefined ? "a shorter input" : `a smaller \`${capField}\``}`;
}

function moreOf({ endUser }: BudgetScope, others: readonly FullBudget[]): string {
  const ids = others.map(({ scope }) => scope.budget.id);
  const isShared = endUser === otherEndUsers;
  const shared = isShared ? ` All end users beyond ${mostEndUsers} in the period share it.` : "";
  return ids.length === 0 ? shared : `${shared} No room either in: ${ids.join(", ")}.`;
}

/** At least cents. */
function usd(nano: number): string {
  return usdOfNano(nano).replace(/0{1,7}$/, "");
}

function budgetsUnavailable(
  model: Model | undefined,
  { isElsewhere = false }: RefusedByLimit,
): GatewayError {
  return new GatewayError("model_unavailable", {
    message:
      "The budgets that your API key is under cannot be checked at the moment. Please retry your " +
      "request.",
    headers: { "retry-after": "1", ...(isElsewhere && { connection: "close" }) },
    explanation: {
      rule: "budgets_unavailable",
      ...(model !== undefined && { model: model.alias }),
      summary:
        "What was spent under the budgets of the key is not known: the process has just started or is " +
        "being replaced, the calls of a process that ended are not stored yet, or the server of " +
        "limits.store does not answer or has lost its data. `sluice status` shows which.",
    },
  });
}
