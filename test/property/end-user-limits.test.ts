import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { admit } from "../../src/admission/admit.ts";
import { EndUserScopes } from "../../src/admission/end-user-scopes.ts";
import { planScopes } from "../../src/admission/plan-scopes.ts";
import { GatewayError } from "../../src/domain/errors/gateway-error.ts";
import type { LimitScope } from "../../src/domain/limits/limit-scope.ts";
import { Calendar } from "../../src/domain/money/calendar.ts";
import { PublishedPrices } from "../../src/domain/money/price.ts";
import type { LimitStore } from "../../src/store/limits/limit-store.ts";
import { MemoryLimitStore } from "../../src/store/limits/memory/limit-store.ts";
import { ManualClock } from "../support/manual-clock.ts";
import {
  callerOf,
  callOf,
  modelOf,
  plainPlan,
  plainWork,
  snapshotOf,
} from "../support/pipeline-fixtures.ts";
import { sizeOf } from "../support/requirement.ts";
import { emptied, limitsOver, steeredBy, valkeyClientOfTests } from "../support/valkey-limits.ts";
import { describeWithValkey } from "../support/valkey-server.ts";

const eachEndUser = { requestsPerMinute: 3, tokensPerMinute: 60 };
/** End users of an account with limits apart; there are more names than that. */
const most = 2;
const windowMs = 60_000;
/** After it, what a call has used is free again. */
const freeMs = 61_000;

const ask = fc.record({
  afterMs: fc.oneof(fc.constantFrom(0, 1, 999, 1_000, 59_999, 60_999, 61_000), fc.nat(20_000)),
  account: fc.constantFrom("acct_a", "acct_b"),
  name: fc.constantFrom("ann", "bea", "cyd", "dan", "eve"),
  tokens: fc.integer({ min: 1, max: 70 }),
  usedPercent: fc.nat(100),
  endsAfterMs: fc.nat(30_000),
  /** Whether its request was counted on arrival, before its end user was known. */
  isCounted: fc.boolean(),
});
type Ask = typeof ask extends fc.Arbitrary<infer Value> ? Value : never;
const history = fc.array(ask, { minLength: 5, maxLength: 40 });

type Create = (clock: ManualClock) => Promise<LimitStore & { tick?(): Promise<void> }>;

/** A call whose end user had these scopes. */
interface Told extends Pick<Ask, "account" | "name" | "tokens"> {
  readonly at: number;
  readonly id: string;
  readonly scopes: readonly LimitScope[];
  /** Undefined: it was refused. */
  readonly usedTokens: number | undefined;
}

async function run(create: Create, asks: readonly Ask[]) {
  const clock = new ManualClock({ monotonicMs: 1_000_000 });
  const store = await create(clock);
  const monotonic = (): number => clock.monotonic();
  const endUsers = new EndUserScopes({ most, monotonic, onOverflow: () => undefined });
  const services = {
    limits: store,
    clock,
    prices: new PublishedPrices(),
    calendar: new Calendar(),
  };
  const running: { readonly endsAt: number; readonly end: () => void | Promise<void> }[] = [];
  const passTo = async (untilMs: number): Promise<void> => {
    for (;;) {
      const [next] = running
        .filter(({ endsAt }) => endsAt <= untilMs)
        .toSorted((one, other) => one.endsAt - other.endsAt);
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
  const told: Told[] = [];
  for (const [index, { account, name, tokens, ...asked }] of asks.entries()) {
    await passTo(clock.monotonic() + asked.afterMs);
    const call = callBy(account, `call ${index}`);
    const scopes = endUsers.of(call, name) ?? [];
    const counting = asked.isCounted ? await store.count(planScopes(call)) : undefined;
    const counted = counting?.isAdmitted === true ? counting.counted : undefined;
    const request = {
      call: { ...call, counted },
      model: modelOf(),
      estimate: { inputTokens: tokens, outputTokens: 0 },
      output: { cap: 0, choices: 1 },
      endUser: scopes,
      ...plainWork,
    };
    const isAdmitted = await isAdmittedBy(async () => admit(request, services));
    const usedTokens = isAdmitted ? Math.ceil((tokens * asked.usedPercent) / 100) : undefined;
    const at = clock.monotonic();
    told.push({ at, account, name, tokens, id: scopes[0]?.id ?? "", scopes, usedTokens });
    if (usedTokens === undefined) continue;
    const end = () => store.settle(call.id, usedTokens);
    running.push({ endsAt: at + asked.endsAfterMs, end });
  }
  await passTo(clock.monotonic() + 200_000);
  return { told, store };
}

function callBy(accountId: string, id: string) {
  const caller = callerOf({ requestsPerMinute: 1_000, tokensPerMinute: 100_000 });
  const key = { ...caller.key, accountId, limitScope: `key_of_${accountId}` };
  const plan = { ...plainPlan, name: key.plan, eachEndUser };
  const snapshot = { ...snapshotOf(["up"]), plans: new Map([[key.plan, plan]]) };
  return { ...callOf({ id, caller: { ...caller, key } }), snapshot };
}

async function isAdmittedBy(admitting: () => Promise<unknown>): Promise<boolean> {
  try {
    await admitting();
    return true;
  } catch (error) {
    if (error instanceof GatewayError && error.status === 429) return false;
    throw error;
  }
}

async function expectWithin(create: Create, asks: readonly Ask[]): Promise<void> {
  const { told, store } = await run(create, asks);
  const isApart = ({ id, name }: Told): boolean => id.endsWith(`:${name}`);
  for (const { at } of told) {
    const within = told.filter((other) => other.at >= at && other.at <= at + windowMs);
    const admitted = within.filter(({ usedTokens }) => usedTokens !== undefined);
    for (const of of Map.groupBy(admitted, ({ id }) => id).values()) {
      expect(of.length).toBeLessThanOrEqual(eachEndUser.requestsPerMinute);
      const tokens = of.reduce((sum, { usedTokens = 0 }) => sum + usedTokens, 0);
      expect(tokens).toBeLessThanOrEqual(eachEndUser.tokensPerMinute);
    }
    for (const of of Map.groupBy(within.filter(isApart), ({ account }) => account).values()) {
      expect(new Set(of.map(({ id }) => id)).size).toBeLessThanOrEqual(most);
    }
  }
  // What was refused had no room: neither a refusal nor another's call has used any.
  for (const [index, { at, id, tokens, usedTokens }] of told.entries()) {
    if (usedTokens !== undefined) continue;
    const before = told
      .slice(0, index)
      .filter((other) => other.id === id && other.at > at - freeMs);
    const admitted = before.filter((other) => other.usedTokens !== undefined);
    const reserved = admitted.reduce((sum, other) => sum + other.tokens, tokens);
    expect(
      admitted.length === eachEndUser.requestsPerMinute || reserved > eachEndUser.tokensPerMinute,
    ).toBe(true);
  }
  // Nobody is in another account's scope, or in another end user's.
  for (const of of Map.groupBy(told, ({ id }) => id).values()) {
    expect(new Set(of.map(({ account }) => account)).size).toBe(1);
    if (of.some(isApart)) expect(new Set(of.map(({ name }) => name)).size).toBe(1);
  }
  // All is settled and has expired: nothing is left of a call, admitted or refused.
  for (const [id, [first]] of Map.groupBy(told, (each) => each.id)) {
    const { scopes } = first ?? { scopes: [] };
    const whole = { callId: `whole ${id}`, scopes, tokens: eachEndUser.tokensPerMinute };
    expect((await store.acquire(whole)).isAdmitted).toBe(true);
  }
}

describe("an end user's calls stay within its limits, those of too many names within one", () => {
  test("in memory", async () => {
    const create: Create = async (clock) => new MemoryLimitStore({ clock, random: () => 0 });
    await fc.assert(
      fc.asyncProperty(history, (asks) => expectWithin(create, asks)),
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
        fc.asyncProperty(history, (asks) => expectWithin(create, asks)),
        { numRuns: sizeOf({ quick: 60, all: 1_000, measured: 3_000 }) },
      );
    });
  });
});
