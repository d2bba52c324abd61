import { expect, test } from "bun:test";
import { budgetOf } from "../../test/contracts/limit-budget-contract.ts";
import { callOf } from "../../test/support/pipeline-fixtures.ts";
import type { BudgetScope } from "../domain/money/budget.ts";
import { refusedByBudgets } from "../store/limits/budget-tally.ts";
import type { FullBudget } from "../store/limits/limit-store.ts";
import { admissionRefusal } from "./admission-refusal.ts";

const day = 24 * 3_600_000;
const state = {
  limitRequests: 10,
  remainingRequests: 10,
  resetRequestsMs: 0,
  limitTokens: 10,
  remainingTokens: 10,
  resetTokensMs: 0,
};

const output = { cap: 9, choices: 1, capField: "max_output_tokens" };

function refusalOf(full: readonly FullBudget[], more: object = {}) {
  const decision = { ...refusedByBudgets(full, state, () => 0), ...more };
  return admissionRefusal({
    request: { call: callOf(), output },
    decision,
    askedTokens: 0,
    now: 0,
  });
}

function scopeOf(id: string, endsAt: number): BudgetScope {
  const { budget, period } = budgetOf(100, { id });
  return { budget, period: { ...period, endsAt } };
}

const spent = { spentNano: 100, reservedNano: 0, requestNano: 1 };
const reserved = { spentNano: 0, reservedNano: 100, requestNano: 1 };

test("of several full budgets the message has the one that resets last, and explain has all", () => {
  const { message, explanation, headers } = refusalOf([
    { scope: scopeOf("running", 9 * day), ...reserved },
    { scope: scopeOf("daily", day), ...spent },
    { scope: scopeOf("monthly", 3 * day), ...spent },
  ]);
  expect(message).toContain("It resets at 1970-01-04T00:00:00.000Z.");
  expect(headers).not.toHaveProperty("retry-after");
  expect(explanation?.budget?.id).toBe("monthly");
  expect(explanation?.summary).toContain("No room either in: daily, running.");
});

test("it says whether a budget is spent, or a smaller request may fit", () => {
  const scope = scopeOf("daily", day);
  expect(refusalOf([{ scope, ...spent }]).message).toContain(" is spent. ");
  const left = { scope, spentNano: 60, reservedNano: 0, requestNano: 50 };
  expect(refusalOf([left]).message).toContain(
    "left for this request; one with a smaller `max_output_tokens` may fit.",
  );
});

test("a call that only running calls keep out may be repeated soon", () => {
  const { headers } = refusalOf([{ scope: scopeOf("running", Infinity), ...reserved }]);
  expect(headers).toMatchObject({ "x-should-retry": "true", "retry-after-ms": "2000" });
});

test("while nobody knows what was spent, a call may be repeated, at the successor of a process too", () => {
  const expected = { status: 503, explanation: { rule: "budgets_unavailable" } };
  expect(refusalOf([])).toMatchObject({ ...expected, headers: { "retry-after": "1" } });
  const headers = { "retry-after": "1", connection: "close" };
  expect(refusalOf([], { isElsewhere: true })).toMatchObject({ ...expected, headers });
});
