import { expect, test } from "bun:test";
import { formatCall, formatRefusal } from "./explain-call.ts";

test("times of a call are rounded for people", () => {
  const call = { outcome: "completed", duration_ms: 1234.5678, first_event_ms: 5.23456 };
  expect(formatCall(call)).toContain("1235 ms, first event after 5.2 ms");
  expect(formatCall({ ...call, first_event_ms: null })).toContain("first event after -");
});

const plain = { outcome: "completed", may_be_billed_twice: false, routing: null };

test("a plain call is explained without tables, and as billed once", () => {
  const text = formatCall(plain);
  expect(text).toEndWith("  Billing      once");
});

test("the routing of a call is explained: candidates with reasons, every attempt, the bill", () => {
  const text = formatCall({
    ...plain,
    may_be_billed_twice: true,
    routing: {
      candidates: [
        { target: "east/m", model: "alpha-sonnet-4", why: "priority 1" },
        { target: "west/m", model: "alpha-sonnet-4", why: "priority 2; out for 12 s" },
      ],
      attempts: [
        {
          target: "east/m",
          model: "alpha-sonnet-4",
          start_ms: 0.4,
          duration_ms: 2000.2,
          outcome: "connection-lost",
          may_be_billed: true,
          decision: "tried the next target",
        },
        {
          target: "west/m",
          model: "alpha-sonnet-4",
          start_ms: 2103,
          duration_ms: 80,
          outcome: "answered",
          may_be_billed: false,
        },
      ],
    },
  });
  expect(text).toContain("Billing      possibly twice");
  expect(text).toEndWith(`
Targets, in order of preference:
     TARGET  MODEL           WHY
  1  east/m  alpha-sonnet-4  priority 1
  2  west/m  alpha-sonnet-4  priority 2; out for 12 s

Attempts:
     TARGET  MODEL           AT MS  MS    OUTCOME                         THEN
  1  east/m  alpha-sonnet-4    0.4  2000  connection-lost; may be billed  tried the next target
  2  west/m  alpha-sonnet-4   2103    80  answered`);
});

test("an answer counts as the call's own bill, even if its row marks it", () => {
  const attempt = { target: "east/m", model: "m", start_ms: 0, duration_ms: 1 };
  const attempts = [{ ...attempt, outcome: "answered", may_be_billed: true }];
  const text = formatCall({ ...plain, routing: { candidates: [], attempts } });
  expect(text).toContain("Billing      once");
  expect(text).toEndWith("answered");
});

test("an interrupted call costs what was reserved for it, not what it is known to have used", () => {
  const interrupted = {
    ...plain,
    outcome: "interrupted",
    output_tokens: 0,
    cost_usd: "0.011700000",
  };
  expect(formatCall(interrupted)).toContain("Cost         0.0117 USD, as reserved");
  expect(formatCall(interrupted)).toContain("Output       0 tokens before the interruption");
});

test("a call without attempts is explained as such", () => {
  const routing = { candidates: [], attempts: [] };
  expect(formatCall({ ...plain, routing })).toEndWith("No target was tried.");
});

test("a budget of each end user is told as one", () => {
  const budget = { id: "bgt_1", limit_usd: "0.05", period: "day", scope: "account" };
  const textOf = (own: object) => formatRefusal({ status: 429, budget: { ...budget, ...own } });
  expect(textOf({ each_end_user: true })).toContain("(day) of each end user of the account");
  expect(textOf({ each_end_user: false })).toContain("(day) of the account");
});

test("a refusal tells the end user and the tags of its call", () => {
  const refusal = { status: 429, rule: "tokens_per_minute" };
  const text = formatRefusal(refusal, { end_user: "eu_1", tags: { team: "search" } });
  expect(text).toMatch(/End user +eu_1/);
  expect(text).toMatch(/Tags .*search/);
  expect(formatRefusal(refusal)).not.toMatch(/End user|Tags/);
});
