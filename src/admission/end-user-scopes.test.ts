import { expect, test } from "bun:test";
import { callOf, plainPlan } from "../../test/support/pipeline-fixtures.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { EndUserScopes } from "./end-user-scopes.ts";
import { isOfEndUser } from "./plan-scopes.ts";

const eachEndUser = { requestsPerMinute: 2, tokensPerMinute: 100 };

function callUnder(limits: typeof eachEndUser | undefined, accountId = "acct_a") {
  const call = callOf({});
  const { key } = call.caller;
  return {
    ...call,
    caller: { ...call.caller, key: { ...key, accountId } },
    snapshot: {
      ...call.snapshot,
      plans: new Map([[key.plan, { ...plainPlan, eachEndUser: limits }]]),
    },
  };
}

test("end users have limits apart, up to a number of live ones of their account", () => {
  const clock = new ManualClock();
  let overflows = 0;
  const scopes = new EndUserScopes({
    most: 3,
    monotonic: () => clock.monotonic(),
    onOverflow: () => (overflows += 1),
  });
  const idOf = (name: string, accountId?: string) =>
    scopes.of(callUnder(eachEndUser, accountId), name)?.[0]?.id ?? "";
  const first = ["a", "b", "c"].map((name) => idOf(name));
  expect(new Set(first).size).toBe(3);
  expect(first.every(isOfEndUser)).toBe(true);
  const others = [idOf("d"), idOf("e")];
  expect(new Set(others).size).toBe(1);
  expect(first).not.toContain(others[0] ?? "");
  expect(overflows).toBe(2);
  // Who has one keeps it; another account has room, and no scope in common.
  expect(idOf("a")).toBe(first[0] ?? "");
  const ofOther = ["a", "b", "c", "d"].map((name) => idOf(name, "acct_b"));
  expect(ofOther.slice(0, 3).toSorted()).toEqual(first.toSorted());
  expect(others).not.toContain(ofOther[3] ?? "");
  // Those whose windows are over make room.
  clock.advance(122_000);
  expect(new Set([...others, idOf("d"), idOf("e")]).size).toBe(3);
});

test("calls of nobody, and under plans without such limits, have none", () => {
  const scopes = new EndUserScopes({ monotonic: () => 0, onOverflow: () => undefined });
  expect(scopes.of(callUnder(eachEndUser), undefined)).toBeUndefined();
  expect(scopes.of(callUnder(undefined), "a")).toBeUndefined();
  expect(scopes.of(callUnder(eachEndUser), "a")).toMatchObject([
    { unit: "requests", limit: 2, owner: "acct_a" },
    { unit: "tokens", limit: 100, owner: "acct_a" },
  ]);
});
