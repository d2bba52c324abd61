import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { minuteScopes } from "../../src/domain/limits/limit-scope.ts";
import { MemoryLimitStore } from "../../src/store/limits/memory/limit-store.ts";
import type { LimitDecision, LimitStore } from "../../src/store/limits/limit-store.ts";
import { LimitModel } from "../support/limit-model.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { sizeOf } from "../support/requirement.ts";
import { emptied, limitsOver, steeredBy, valkeyClientOfTests } from "../support/valkey-limits.ts";
import { describeWithValkey } from "../support/valkey-server.ts";

const scopeIds = ["key", "account", "pool", "tried"] as const;
/** Small, so that limits are reached. */
const limits = { requestsPerMinute: 5, tokensPerMinute: 90 };
const scopes = new Map(
  scopeIds.map((id) => {
    const terms = { overrunFactor: 3, owner: "account", isAudited: id === "tried" };
    return [id, minuteScopes(id, limits, terms)];
  }),
);

const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("wait"),
      ms: fc.oneof(
        fc.constantFrom(1, 500, 999, 1_000, 1_001, 30_000, 59_999, 60_000, 60_999, 61_000),
        fc.integer({ min: 0, max: 20_000 }),
      ),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("acquire"),
      ids: fc.shuffledSubarray([...scopeIds], { minLength: 1 }),
      tokens: fc.integer({ min: 0, max: 45 }),
      overrun: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 150 })),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("use"), call: fc.nat(50), tokens: fc.nat(300) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("settle"), call: fc.nat(50), tokens: fc.nat(400) }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

const history = fc.record({
  startMs: fc.constantFrom(1_000_000, 1_000_250, 123_456_789),
  steps: fc.array(step, { minLength: 5, maxLength: 60 }),
});

/** A call that is settled for less once its second is no longer counted, beside a debt that another has paid. */
const settledLate: { startMs: number; steps: Step[] } = {
  startMs: 1_000_000,
  steps: [
    { kind: "acquire", ids: ["key", "account"], tokens: 0, overrun: 1 },
    { kind: "use", call: 0, tokens: 23 },
    { kind: "wait", ms: 60_999 },
    { kind: "acquire", ids: ["key"], tokens: 0, overrun: 1 },
    { kind: "settle", call: 1, tokens: 68 },
    { kind: "wait", ms: 1 },
    { kind: "acquire", ids: ["account"], tokens: 0, overrun: 0 },
    { kind: "settle", call: 0, tokens: 0 },
    { kind: "acquire", ids: ["key"], tokens: 0, overrun: 0 },
  ],
};

type Create = (clock: ManualClock) => Promise<LimitStore & { tick?(): Promise<void> }>;

/** A store and the plainest form of its rules, which must agree on every answer. */
async function compare(create: Create, startMs: number, steps: readonly Step[]): Promise<void> {
  const clock = new ManualClock({ monotonicMs: startMs });
  const store = await create(clock);
  const model = new LimitModel();
  const calls: string[] = [];
  for (const next of steps) {
    switch (next.kind) {
      case "wait":
        for (let left = next.ms; left > 0; left -= 30_000) {
          clock.advance(Math.min(left, 30_000));
          await store.tick?.();
        }
        break;
      case "acquire": {
        const callId = `call ${calls.length}`;
        calls.push(callId);
        const asked = next.ids.flatMap((id) => scopes.get(id) ?? []);
        const { tokens, overrun } = next;
        const request = { callId, scopes: asked, tokens, mostTokens: tokens + overrun };
        const decision = await store.acquire(request);
        expect(toldOf(decision)).toEqual(toldOf(model.acquire(request, clock.monotonic())));
        break;
      }
      case "use": {
        const callId = calls[next.call % (calls.length + 1)] ?? "unknown";
        await store.use(callId, next.tokens);
        model.use(callId, next.tokens, clock.monotonic());
        break;
      }
      case "settle": {
        const callId = calls[next.call % (calls.length + 1)] ?? "unknown";
        await store.settle(callId, next.tokens);
        model.settle(callId, next.tokens, clock.monotonic());
        break;
      }
      default:
        next satisfies never;
    }
  }
}

function toldOf(decision: LimitDecision): object {
  if (decision.isAdmitted) {
    const { state, wouldRefuse } = decision;
    return { isAdmitted: true, state, wouldRefuse: wouldRefuse && toldOf(wouldRefuse) };
  }
  const { scopeId, dimension, freeAfterMs, overrun, state, debt } = decision;
  return { scopeId, dimension, freeAfterMs, overrun, state, debt };
}

describe("random histories agree with the plainest form of the rules", () => {
  test("in memory", async () => {
    const create: Create = async (clock) => new MemoryLimitStore({ clock, random: () => 0 });
    await fc.assert(
      fc.asyncProperty(history, ({ startMs, steps }) => compare(create, startMs, steps)),
      { numRuns: sizeOf({ quick: 300, all: 10_000, measured: 10_000 }) },
    );
  });

  describeWithValkey(() => {
    const valkey = valkeyClientOfTests();

    test("over a server", async () => {
      const create: Create = async (clock) => {
        await emptied(valkey.server);
        const terms = { clock, random: () => 0, isLeasing: false };
        return limitsOver(steeredBy(clock, valkey.client), terms);
      };
      await fc.assert(
        fc.asyncProperty(history, ({ startMs, steps }) => compare(create, startMs, steps)),
        {
          numRuns: sizeOf({ quick: 150, all: 2_000, measured: 10_000 }),
          examples: [[settledLate]],
        },
      );
    });
  });
});
