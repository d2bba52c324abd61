import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { planWeights, reservationUnder } from "../../src/admission/reserve-tokens.ts";
import { minuteScopes } from "../../src/domain/limits/limit-scope.ts";
import type { Plan } from "../../src/domain/limits/plan.ts";
import { dearestTokens, planTokens } from "../../src/domain/limits/token-weights.ts";
import type { LimitStore } from "../../src/store/limits/limit-store.ts";
import { MemoryLimitStore } from "../../src/store/limits/memory/limit-store.ts";
import { ManualClock } from "../support/manual-clock.ts";
import {
  callerOf,
  callOf,
  modelOf,
  plainPlan,
  snapshotOf,
  targetOf,
} from "../support/pipeline-fixtures.ts";
import { sizeOf } from "../support/requirement.ts";
import { emptied, limitsOver, steeredBy, valkeyClientOfTests } from "../support/valkey-limits.ts";
import { describeWithValkey } from "../support/valkey-server.ts";

const limits = { requestsPerMinute: 1_000, tokensPerMinute: 1_000 };
const scopes = minuteScopes("key", limits, { overrunFactor: 3, owner: "account" });
const claude = { ...targetOf("up"), outputQuotaWeight: 5 };
const targets = [targetOf("up"), claude];

const weight = fc.integer({ min: 0, max: 700 });
const tokenWeights = fc.record({
  cachedInput: weight,
  cacheWrite: weight,
  output: fc.oneof(weight, fc.constant("by-model" as const)),
});

/** A call, what its answer uses of what it may, and when it ends. */
const call = fc.record({
  afterMs: fc.oneof(fc.constantFrom(0, 1, 999, 1_000, 59_999, 60_000), fc.nat(10_000)),
  inputTokens: fc.nat(300),
  cap: fc.nat(100),
  cached: fc.nat(100),
  written: fc.nat(100),
  output: fc.nat(100),
  target: fc.constantFrom(...targets),
  endsAfterMs: fc.oneof(fc.nat(3_000), fc.nat(100_000)),
  isStreamed: fc.boolean(),
});
type Asked = typeof call extends fc.Arbitrary<infer Value> ? Value : never;

const history = fc.record({ tokenWeights, calls: fc.array(call, { minLength: 5, maxLength: 40 }) });

type Create = (clock: ManualClock) => Promise<LimitStore & { tick?(): Promise<void> }>;

interface Running {
  readonly endsAt: number;
  readonly end: () => void | Promise<void>;
}

/** What each admitted call counted when it had ended, by the time of its admission. */
async function run(
  create: Create,
  {
    tokenWeights: plan,
    calls,
  }: { readonly tokenWeights: Plan["tokenWeights"]; readonly calls: readonly Asked[] },
) {
  const clock = new ManualClock({ monotonicMs: 1_000_000 });
  const store = await create(clock);
  const caller = callerOf(limits);
  const snapshot = {
    ...snapshotOf(["up"]),
    plans: new Map([
      [caller.key.plan, { ...plainPlan, name: caller.key.plan, tokenWeights: plan }],
    ]),
  };
  const running: Running[] = [];
  const counted: { readonly at: number; readonly tokens: number }[] = [];
  const passTo = async (untilMs: number) => {
    for (;;) {
      const next = running
        .toSorted((one, other) => one.endsAt - other.endsAt)
        .find(({ endsAt }) => endsAt <= untilMs);
      const at = next?.endsAt ?? untilMs;
      while (clock.monotonic() < at) {
        clock.advance(Math.min(30_000, at - clock.monotonic()));
        await store.tick?.();
      }
      if (next === undefined) return;
      running.splice(running.indexOf(next), 1);
      await next.end();
    }
  };
  for (const [index, asked] of calls.entries()) {
    await passTo(clock.monotonic() + asked.afterMs);
    const callId = `call ${index}`;
    const { inputTokens, cap, target } = asked;
    const request = {
      call: { ...callOf({ id: callId, caller }), snapshot },
      model: modelOf({ targets }),
      estimate: { inputTokens, outputTokens: cap },
      output: { cap, choices: 1 },
    };
    const weights = planWeights(request);
    const { tokens, mostTokens } = reservationUnder(limits.tokensPerMinute, request, weights);
    const decision = await store.acquire({ callId, scopes, tokens, mostTokens });
    if (!decision.isAdmitted) continue;
    const cachedInputTokens = Math.floor((inputTokens * asked.cached) / 100);
    const usage = {
      inputTokens,
      cachedInputTokens,
      cacheWriteTokens: Math.floor(((inputTokens - cachedInputTokens) * asked.written) / 100),
      outputTokens: Math.floor((cap * asked.output) / 100),
      reasoningTokens: 0,
    };
    const used = planTokens(weights, usage, target);
    counted.push({ at: clock.monotonic(), tokens: used });
    const end = async () => {
      if (asked.isStreamed) {
        await store.use(callId, dearestTokens(weights, inputTokens, usage.outputTokens));
      }
      await store.settle(callId, used);
    };
    running.push({ endsAt: clock.monotonic() + asked.endsAfterMs, end });
  }
  await passTo(clock.monotonic() + 200_000);
  return { counted, store };
}

async function expectWithin(create: Create, of: Parameters<typeof run>[1]): Promise<void> {
  const { counted, store } = await run(create, of);
  for (const { at } of counted) {
    const within = counted.filter((other) => other.at >= at && other.at <= at + 60_000);
    const sum = within.reduce((total, { tokens }) => total + tokens, 0);
    expect(sum).toBeLessThanOrEqual(limits.tokensPerMinute);
  }
  // All is settled and has expired: nothing was counted that no call has used.
  const whole = { callId: "whole", scopes, tokens: limits.tokensPerMinute };
  expect((await store.acquire(whole)).isAdmitted).toBe(true);
}

describe("no 60 seconds hold more than a weighted limit, whatever the weights", () => {
  test("in memory", async () => {
    const create: Create = async (clock) => new MemoryLimitStore({ clock, random: () => 0 });
    await fc.assert(
      fc.asyncProperty(history, (of) => expectWithin(create, of)),
      { numRuns: sizeOf({ quick: 200, all: 3_000, measured: 10_000 }) },
    );
  });

  describeWithValkey(() => {
    const valkey = valkeyClientOfTests();

    test.each([true, false])("over a server, with leases: %p", async (isLeasing) => {
      const create: Create = async (clock) => {
        await emptied(valkey.server);
        return limitsOver(steeredBy(clock, valkey.client), { clock, random: () => 0, isLeasing });
      };
      await fc.assert(
        fc.asyncProperty(history, (of) => expectWithin(create, of)),
        { numRuns: sizeOf({ quick: 60, all: 1_000, measured: 3_000 }) },
      );
    });
  });
});
