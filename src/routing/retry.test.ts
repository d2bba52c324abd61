import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import type { UpstreamFailureKind } from "../domain/errors/failure-kind.ts";
import { decisionName } from "./target-view.ts";
import { decideRetry, mayBeBilled, type RetryFacts } from "./retry.ts";

type Facts = Partial<Omit<RetryFacts, "failure">> & {
  readonly kind: UpstreamFailureKind;
  readonly retryAfterMs?: number;
};

/** The first attempt of a call failed, and another target is left. */
function factsOf({ kind, retryAfterMs, ...values }: Facts): RetryFacts {
  return {
    failure: { kind, message: "", retryAfterMs },
    triesAtTarget: 1,
    attempts: 1,
    attemptLimit: 4,
    hasOtherTarget: true,
    isOtherInService: false,
    isCallerGone: false,
    remainingMs: Number.POSITIVE_INFINITY,
    takeBudget: () => true,
    firstBackoffMs: 100,
    longestBackoffMs: 2_000,
    random: () => 0.5,
    ...values,
  };
}

/** `next-target`, `same-target +50`, or the reason to give up. */
function decide(facts: Facts): string {
  const decision = decideRetry(factsOf(facts));
  const waitMs = decision.action === "retry" ? decision.waitMs : 0;
  return `${decisionName(decision)}${waitMs > 0 ? ` +${waitMs}` : ""}`;
}

/**
 * By kind: the decision after the first try with another target, without one, after the second try
 * at the only target, and whether the attempt may be billed.
 */
const table: Readonly<Record<UpstreamFailureKind, readonly [string, string, string, boolean]>> = {
  throttled: ["next-target", "same-target +75", "same-target +150", false],
  overloaded: ["next-target", "same-target +75", "same-target +150", false],
  unavailable: ["next-target", "same-target +75", "same-target +150", false],
  "connect-failed": ["next-target", "same-target +75", "same-target +150", false],
  "timed-out": ["next-target", "same-target +75", "same-target +150", true],
  "connection-lost": ["next-target", "same-target +75", "same-target +150", true],
  "broken-answer": ["next-target", "same-target +75", "same-target +150", true],
  "answer-too-large": ["cannot-mend", "cannot-mend", "cannot-mend", true],
  "unfit-answer": ["next-target", "same-target", "cannot-mend", true],
  "bad-credential": ["next-target", "no-other-target", "no-other-target", false],
  "account-blocked": ["next-target", "no-other-target", "no-other-target", false],
  "stale-credential": ["same-target", "same-target", "no-other-target", false],
  unsupported: ["next-target", "no-other-target", "no-other-target", false],
  "unknown-model": ["next-target", "no-other-target", "no-other-target", false],
  "context-overflow": ["next-target", "cannot-mend", "cannot-mend", false],
  "invalid-request": ["cannot-mend", "cannot-mend", "cannot-mend", false],
  "content-refused": ["cannot-mend", "cannot-mend", "cannot-mend", false],
};

const kinds = Object.keys(table) as UpstreamFailureKind[];
const isHopeless = (kind: UpstreamFailureKind): boolean => table[kind][0] === "cannot-mend";

describe.each(kinds)("%s", (kind) => {
  const [withOther, alone, aloneAgain, isBilled] = table[kind];

  test("has its decision with another target and without one", () => {
    expect(decide({ kind })).toBe(withOther);
    expect(decide({ kind, hasOtherTarget: false })).toBe(alone);
    const second = { triesAtTarget: 2, attempts: 2 };
    expect(decide({ kind, hasOtherTarget: false, ...second })).toBe(aloneAgain);
    const elsewhere = isHopeless(kind) ? "cannot-mend" : "next-target";
    expect(decide({ kind, ...second })).toBe(elsewhere);
  });

  test("takes from the budget only for another attempt at the same target", () => {
    let asked = 0;
    const takeBudget = (): boolean => {
      asked += 1;
      return false;
    };
    const isAgain = alone.startsWith("same-target") && kind !== "stale-credential";
    expect(decide({ kind, takeBudget })).toBe(withOther);
    expect(asked).toBe(0);
    expect(decide({ kind, hasOtherTarget: false, takeBudget })).toBe(isAgain ? "budget" : alone);
    expect(asked).toBe(isAgain ? 1 : 0);
  });

  test("is never retried once the caller left or the attempts are used up", () => {
    const takeBudget = (): boolean => {
      throw new Error("the budget is asked last");
    };
    expect(decide({ kind, takeBudget, isCallerGone: true })).toBe("caller-gone");
    const used = isHopeless(kind) ? "cannot-mend" : "attempt-limit";
    expect(decide({ kind, takeBudget, attempts: 4 })).toBe(used);
    const late = isHopeless(kind) ? "cannot-mend" : "deadline";
    expect(decide({ kind, takeBudget, remainingMs: 0 })).toBe(late);
  });

  test("may be billed or not", () => {
    expect(mayBeBilled(kind, false)).toBe(isBilled);
    expect(mayBeBilled(kind, true)).toBe(true);
  });
});

test("the backoff doubles with each try, up to the longest", () => {
  const waits = [1, 2, 3, 4, 5, 6, 7].map((triesAtTarget) =>
    decide({
      kind: "overloaded",
      hasOtherTarget: false,
      attemptLimit: 10,
      triesAtTarget,
      attempts: triesAtTarget,
    }),
  );
  const expected = [75, 150, 300, 600, 1_200, 1_500, 1_500];
  expect(waits).toEqual(expected.map((waitMs) => `same-target +${waitMs}`));
});

test("a Retry-After is added to the backoff, unless it is longer than the longest backoff", () => {
  const alone = { kind: "throttled", hasOtherTarget: false } as const;
  expect(decide({ ...alone, retryAfterMs: 2_000 })).toBe("same-target +2075");
  expect(decide({ ...alone, retryAfterMs: 2_001 })).toBe("asked-to-wait");
});

test("a Retry-After is ignored when another target is in service", () => {
  const other = { kind: "throttled", hasOtherTarget: false, isOtherInService: true } as const;
  expect(decide({ ...other, retryAfterMs: 60_000 })).toBe("same-target +75");
});

test("at least half of the backoff is fixed, the rest random", () => {
  const waits = [0, 0.25, 0.999].map((draw) =>
    decide({ kind: "throttled", hasOtherTarget: false, firstBackoffMs: 1_000, random: () => draw }),
  );
  expect(waits).toEqual(["same-target +500", "same-target +625", "same-target +999.5"]);
});

test("the Retry-After of one provider does not delay another target", () => {
  expect(decide({ kind: "throttled", retryAfterMs: 60_000 })).toBe("next-target");
});

test("no backoff reaches the caller's deadline", () => {
  const alone = { kind: "unavailable", hasOtherTarget: false } as const;
  expect(decide({ ...alone, remainingMs: 76 })).toBe("same-target +75");
  expect(decide({ ...alone, remainingMs: 75 })).toBe("deadline");
});

const anyFacts = fc.record({
  kind: fc.constantFrom(...kinds),
  retryAfterMs: fc.nat(10_000),
  triesAtTarget: fc.integer({ min: 1, max: 10 }),
  attempts: fc.integer({ min: 1, max: 10 }),
  attemptLimit: fc.integer({ min: 1, max: 10 }),
  hasOtherTarget: fc.boolean(),
  isCallerGone: fc.boolean(),
  remainingMs: fc.oneof(fc.constant(Number.POSITIVE_INFINITY), fc.nat(10_000)),
  firstBackoffMs: fc.integer({ min: 1, max: 60_000 }),
  longestBackoffMs: fc.integer({ min: 1, max: 300_000 }),
  draw: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  isBudgetLeft: fc.boolean(),
});

test("for any facts only a retry takes budget, and backoffs and attempts are bounded", () => {
  fc.assert(
    fc.property(anyFacts, ({ draw, isBudgetLeft, ...facts }) => {
      let taken = 0;
      const takeBudget = (): boolean => {
        taken += isBudgetLeft ? 1 : 0;
        return isBudgetLeft;
      };
      const decision = decideRetry(factsOf({ ...facts, random: () => draw, takeBudget }));
      if (decision.action === "give-up") {
        expect(taken).toBe(0);
        return;
      }
      expect(facts.isCallerGone || isHopeless(facts.kind)).toBe(false);
      expect(facts.attempts).toBeLessThan(facts.attemptLimit);
      expect(decision.waitMs).toBeLessThan(facts.remainingMs);
      expect(decision.waitMs).toBeLessThanOrEqual(2 * facts.longestBackoffMs);
      if (decision.where === "next-target") {
        expect([facts.hasOtherTarget, decision.waitMs]).toEqual([true, 0]);
      }
      const isAgain = decision.where === "same-target" && facts.kind !== "stale-credential";
      expect(taken).toBe(isAgain ? 1 : 0);
    }),
    { numRuns: 2_000 },
  );
});
