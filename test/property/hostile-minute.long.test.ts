import { expect, test } from "bun:test";
import fc from "fast-check";
import type { UncappedOutput } from "../../src/domain/limits/plan.ts";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import { sizeOf } from "../support/requirement.ts";
import { TenantWorld, type Report, type WorldOptions } from "../support/tenant-world.ts";

/** The use of limits under any actions of tenants, upstreams and the process. */

const accounts = 3;
const limits = { requestsPerMinute: 40, tokensPerMinute: 1_000 };
const overrunFactor = 3;
const numRuns = sizeOf({ quick: 150, all: 400, measured: 5_000 });

const report = fc.oneof<fc.WeightedArbitrary<Report>[]>(
  { weight: 5, arbitrary: fc.constantFrom<Report>("right", "nothing", "too-little") },
  { weight: 1, arbitrary: fc.constant<Report>("far-too-much") },
);
/** The number of keys of an account. */
const keys = fc.constantFrom(1, 1, 2);
const which = fc.nat({ max: 60 });
const account = fc.nat({ max: accounts - 1 });
const asking = fc.record({
  bodyBytes: fc.integer({ min: 3, max: 900 }),
  cap: fc.option(fc.integer({ min: 1, max: 400 }), { nil: undefined }),
  choices: fc.constantFrom(1, 1, 1, 2, 5, 8),
});

const steps = {
  wait: fc.record({
    kind: fc.constant("wait" as const),
    ms: fc.oneof(
      fc.integer({ min: 0, max: 3_000 }),
      fc.constantFrom(999, 1_000, 30_000, 59_999, 60_000, 61_000, 200_000),
    ),
  }),
  ask: fc.record({ kind: fc.constant("ask" as const), account, which, asking }),
  write: fc.record({
    kind: fc.constant("write" as const),
    account,
    which,
    tokens: fc.constantFrom(1, 50, 300, 700, 3_200),
  }),
  finish: fc.record({ kind: fc.constant("finish" as const), account, which, report }),
  rush: fc.record({
    kind: fc.constant("rush" as const),
    account,
    calls: fc.integer({ min: 1, max: 5 }),
    asking: asking.map((drawn) => ({ ...drawn, cap: undefined })),
  }),
  leave: fc.record({ kind: fc.constant("leave" as const), account, which }),
  cycle: fc.record({ kind: fc.constant("cycle" as const), account, which }),
  crash: fc.record({ kind: fc.constant("crash" as const) }),
};
type Step = { [Name in keyof typeof steps]: Drawn<(typeof steps)[Name]> }[keyof typeof steps];
type Drawn<Arbitrary> = Arbitrary extends fc.Arbitrary<infer Value> ? Value : never;

const plays: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof<fc.WeightedArbitrary<Step>[]>(
    { weight: 4, arbitrary: steps.wait },
    { weight: 8, arbitrary: steps.ask },
    { weight: 4, arbitrary: steps.rush },
    { weight: 5, arbitrary: steps.write },
    { weight: 4, arbitrary: steps.finish },
    { weight: 1, arbitrary: steps.leave },
    { weight: 1, arbitrary: steps.cycle },
    { weight: 1, arbitrary: steps.crash },
  ),
  { maxLength: 150, size: "max" },
);

async function play(world: TenantWorld, step: Step): Promise<void> {
  switch (step.kind) {
    case "wait":
      return world.clock.advance(step.ms);
    case "ask":
      return world.ask(step.account, step.which, step.asking);
    case "rush":
      return world.rush(step.account, step.calls, step.asking);
    case "write":
      return world.write(step.account, step.which, step.tokens);
    case "finish":
      return world.finish(step.account, step.which, step.report);
    case "leave":
      return world.leave(step.account, step.which);
    case "cycle":
      return world.cycle(step.account, step.which);
    case "crash":
      return world.crash();
  }
}

async function start(uncapped: UncappedOutput, keysOfAccount: number): Promise<TenantWorld> {
  const options: WorldOptions = {
    accounts,
    keysOfAccount,
    limits,
    terms: { uncapped, overrunFactor },
  };
  return TenantWorld.start(options);
}

/** The unknown use of an interrupted call: at most its reservation or its reported tokens. */
function tokensOf(rows: readonly UsageRecord[]): number {
  return rows.reduce((sum, { inputTokens, outputTokens, outcome, reservedTokens = 0 }) => {
    const counted = inputTokens + outputTokens;
    return sum + (outcome === "interrupted" ? Math.max(counted, reservedTokens) : counted);
  }, 0);
}

/** The most tokens of rows that began within any window of this many milliseconds. */
function worst(rows: readonly UsageRecord[], windowMs: number): number {
  let most = 0;
  for (const { startedAt: from } of rows) {
    const within = rows.filter(({ startedAt }) => startedAt >= from && startedAt < from + windowMs);
    most = Math.max(most, tokensOf(within));
  }
  return most;
}

const bounds: readonly (readonly [UncappedOutput, number])[] = [
  ["debt", overrunFactor],
  ["cap", 0],
  ["maximum", 0],
];

test.each(bounds)(
  "under %s, no account ever exceeds its limits and their bound",
  async (uncapped, factor) => {
    const { tokensPerMinute } = limits;
    const property = fc.asyncProperty(plays, keys, async (played, keysOfAccount) => {
      await using world = await start(uncapped, keysOfAccount);
      const began = world.clock.monotonic();
      for (const step of played) await play(world, step);
      const minutes = (world.clock.monotonic() - began) / 60_000;
      for (let index = 0; index < accounts; index += 1) {
        const rows = (await world.rows(index)).filter(({ status }) => status !== 429);
        const ofKeys = keysOfAccount * tokensPerMinute;
        // Tokens that an upstream reports beyond the possible use of a call cannot be predicted.
        const lies = world.lies[index] ?? 0;
        expect(worst(rows, 60_000)).toBeLessThanOrEqual(ofKeys * (1 + factor) + lies);
        expect(tokensOf(rows)).toBeLessThanOrEqual(ofKeys * (minutes + 1 + factor) + lies);
      }
    });
    await fc.assert(property, { numRuns, endOnFailure: true });
  },
  600_000,
);

test("other tenants change neither an account's answers nor its bill", async () => {
  const property = fc.asyncProperty(plays, async (played) => {
    const outcomes: unknown[] = [];
    for (const isAlone of [false, true]) {
      await using world = await start("debt", 2);
      for (const step of played) {
        const isOfOther = "account" in step && step.account !== 0;
        if (!(isAlone && isOfOther)) await play(world, step);
      }
      outcomes.push(world.outcomes[0]);
    }
    expect(outcomes[1]).toEqual(outcomes[0]);
  });
  await fc.assert(property, { numRuns: Math.ceil(numRuns / 3), endOnFailure: true });
}, 600_000);
