import { type UnitUse, usesOf } from "../domain/limits/limit-scope.ts";
import { usdOfNano } from "../domain/money/usd.ts";
import type { BudgetUse, KeyTotal, KeyUse } from "../domain/live-facts.ts";
import type { KeyCall } from "../edge/dispatch/route.ts";
import { jsonReply, type Reply } from "../edge/replies/error-reply.ts";

export type ReadKeyUse = (call: Pick<KeyCall, "caller" | "snapshot">) => Promise<KeyUse>;

/** `GET /v1/usage`: what the key of the request uses of its limits now, and has used lately. */
export function createKeyUsage(read: ReadKeyUse): (call: KeyCall) => Promise<Reply> {
  return async (call) => {
    const { windows, totals } = await read(call);
    const { id: key_id, application, plan } = call.caller.key;
    const limits = windows.map(viewWindow);
    const used = totals && { day: viewTotal(totals.day), month: viewTotal(totals.month) };
    const budgets = totals?.budgets.map(viewBudget) ?? null;
    const body = {
      object: "usage",
      key_id,
      application,
      plan,
      limits,
      budgets,
      totals: used ?? null,
    };
    return jsonReply(body, { "cache-control": "no-store" });
  };
}

function viewWindow({ of, seconds, state }: KeyUse["windows"][number]) {
  const { requests, tokens } = usesOf(state);
  return {
    scope: of,
    window_seconds: seconds,
    // A guarantee has no limit of requests.
    requests: requests.limit === Infinity ? null : viewUse(requests),
    tokens: viewUse(tokens),
  };
}

function viewUse({ resetMs, ...use }: UnitUse) {
  return { ...use, reset_ms: Math.ceil(resetMs) };
}

/** What others of the account spend is not for every holder of a key. */
function viewBudget({ budget, period, spentNano, unpricedCalls }: BudgetUse) {
  const { applicationId, keyId, limitNano, eachEndUser = false } = budget;
  const isOwn = applicationId !== undefined || keyId !== undefined;
  const isOfOne = isOwn && !eachEndUser;
  const scope = keyId === undefined ? (isOwn ? "application" : "account") : "key";
  return {
    id: budget.id,
    scope,
    model: budget.model ?? null,
    each_end_user: eachEndUser,
    period: budget.period,
    mode: budget.mode,
    resets_at: Number.isFinite(period.endsAt) ? period.endsAt / 1000 : null,
    limit_usd: isOwn ? usdOfNano(limitNano) : null,
    spent_usd: isOfOne ? usdOfNano(spentNano) : null,
    remaining_usd: isOfOne ? usdOfNano(Math.max(0, limitNano - spentNano)) : null,
    unpriced_calls: isOfOne ? unpricedCalls : null,
  };
}

/** Times in seconds, as in OpenAI's objects. */
function viewTotal(total: KeyTotal) {
  return {
    since: total.since / 1000,
    calls: total.calls,
    failed_calls: total.failedCalls,
    input_tokens: total.inputTokens,
    cached_input_tokens: total.cachedInputTokens,
    output_tokens: total.outputTokens,
    cost_usd: total.costNano === undefined ? null : usdOfNano(total.costNano),
    unpriced_calls: total.unpricedCalls,
  };
}
