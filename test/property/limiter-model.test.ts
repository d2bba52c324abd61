import { expect, test } from "bun:test";
import fc from "fast-check";
import { MemoryLimitStore } from "../../src/store/limits/memory/limit-store.ts";
import { type LimitScope, minuteScopes } from "../../src/domain/limits/limit-scope.ts";
import type { LimitDecision } from "../../src/store/limits/limit-store.ts";
import { LimitModel } from "../support/limit-model.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { runsOf } from "../support/requirement.ts";

const scopeIds = ["key", "account", "pool"] as const;

type Step =
  | { kind: "wait"; ms: number }
  | { kind: "jump-wall"; ms: number }
  | { kind: "acquire"; scopeIds: readonly string[]; tokens: number; overrun: number }
  | { kind: "use"; call: number; tokens: number }
  | { kind: "settle"; call: number; tokens: number }
  | { kind: "set-limits"; scopeId: string; requestsPerMinute: number; tokensPerMinute: number }
  | { kind: "obey-refusal" };

// Interesting waits are close to a slot, the window or a reservation's lifetime.
const waitMs = fc.oneof(
  fc.constantFrom(1, 500, 999, 1_000, 1_001, 30_000),
  fc.constantFrom(59_000, 59_999, 60_000, 60_001, 60_999, 61_000, 62_000, 64_000, 65_000),
  fc.constantFrom(89_999, 90_000, 122_000, 128_000, 1_000_000),
  fc.integer({ min: 0, max: 20_000 }),
  // Binary fractions keep sums of times exact.
  fc.integer({ min: 0, max: 4_000 }).map((quarters) => quarters / 4),
);
const tokens = fc.integer({ min: 0, max: 45 });
const limitValues = {
  requestsPerMinute: fc.integer({ min: 0, max: 6 }),
  tokensPerMinute: fc.integer({ min: 1, max: 100 }),
};

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: waitMs }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("acquire" as const),
      scopeIds: fc.shuffledSubarray([...scopeIds], { minLength: 1 }),
      tokens,
      overrun: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 150 })),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("use" as const),
      call: fc.nat(50),
      tokens: fc.integer({ min: 0, max: 300 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("settle" as const),
      call: fc.nat(50),
      tokens: fc.integer({ min: 0, max: 400 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("set-limits" as const),
      scopeId: fc.constantFrom(...scopeIds),
      ...limitValues,
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("obey-refusal" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("jump-wall" as const),
      ms: fc.constantFrom(-3_600_000, 3_600_000),
    }),
  },
);

const history = fc.record({
  startMs: fc.constantFrom(0, 250.25, 999.75, 123_456_789),
  limits: fc.tuple(...scopeIds.map(() => fc.record(limitValues))),
  steps: fc.array(step, { minLength: 5, maxLength: 60 }),
});

type History = typeof history extends fc.Arbitrary<infer Value> ? Value : never;

/** The limiter and its model, which must agree on every answer and every counter. */
class Comparison {
  readonly #clock: ManualClock;
  readonly #store;
  readonly #model = new LimitModel();
  readonly #scopes = new Map<string, readonly LimitScope[]>();
  readonly #calls: string[] = [];
  #lastRefused: { scopes: readonly LimitScope[]; tokens: number; waitMs: number } | undefined;

  constructor({ startMs, limits }: History) {
    this.#clock = new ManualClock({ monotonicMs: startMs });
    this.#store = new MemoryLimitStore({
      clock: this.#clock,
      random: () => 0,
    });
    for (const [index, id] of scopeIds.entries()) {
      const values = limits[index] ?? { requestsPerMinute: 1, tokensPerMinute: 1 };
      this.#scopes.set(id, minuteScopes(id, values, { overrunFactor: 3 }));
    }
  }

  run(next: Step): void {
    const before = this.#states();
    switch (next.kind) {
      case "wait":
        this.#clock.advance(next.ms);
        break;
      case "jump-wall":
        this.#clock.jumpWall(next.ms);
        expect(this.#states()).toEqual(before);
        break;
      case "acquire": {
        const scopes = next.scopeIds.flatMap((id) => this.#scopes.get(id) ?? []);
        const decision = this.#acquire(scopes, next.tokens, next.tokens + next.overrun);
        if (!decision.isAdmitted) expect(this.#states()).toEqual(before);
        break;
      }
      case "use": {
        const callId = this.#calls[next.call % (this.#calls.length + 1)] ?? "unknown";
        this.#store.use(callId, next.tokens);
        this.#model.use(callId, next.tokens, this.#clock.monotonic());
        break;
      }
      case "settle":
        this.#settle(this.#calls[next.call % (this.#calls.length + 1)], next.tokens);
        break;
      case "set-limits":
        this.#scopes.set(next.scopeId, minuteScopes(next.scopeId, next, { overrunFactor: 3 }));
        this.#lastRefused = undefined;
        break;
      case "obey-refusal":
        this.#obeyRefusal();
        break;
    }
    if (next.kind !== "acquire" && next.kind !== "jump-wall") this.#lastRefused = undefined;
    const now = this.#clock.monotonic();
    for (const scopes of this.#scopes.values()) {
      expect(this.#store.peek(scopes)).toEqual(this.#model.peek(scopes, now));
    }
    expect(this.#store.scopeCount).toBeLessThanOrEqual(2 * scopeIds.length);
    expect(this.#store.state().calls.length).toBeLessThanOrEqual(this.#calls.length);
  }

  #acquire(scopes: readonly LimitScope[], wanted: number, mostTokens = wanted): LimitDecision {
    const request = { callId: `call ${this.#calls.length}`, scopes, tokens: wanted, mostTokens };
    const decision = this.#store.acquire(request);
    expect(decision).toEqual(this.#model.acquire(request, this.#clock.monotonic()));
    this.#lastRefused = undefined;
    if (decision.isAdmitted) this.#calls.push(request.callId);
    // The end of a call is unknown, and an hour may not pay a larger debt.
    else if ((decision.retryAfterMs ?? Infinity) < 3_599_000 && decision.overrun === undefined) {
      this.#lastRefused = { scopes, tokens: wanted, waitMs: decision.retryAfterMs ?? 0 };
    }
    return decision;
  }

  #settle(callId: string | undefined, used: number): void {
    this.#store.settle(callId ?? "unknown", used);
    this.#model.settle(callId ?? "unknown", used, this.#clock.monotonic());
    const once = this.#states();
    this.#store.settle(callId ?? "unknown", used + 1);
    expect(this.#states()).toEqual(once);
  }

  #obeyRefusal(): void {
    const refused = this.#lastRefused;
    if (refused === undefined) return;
    expect(refused.waitMs).toBeGreaterThan(0);
    this.#clock.advance(refused.waitMs);
    expect(this.#acquire(refused.scopes, refused.tokens).isAdmitted).toBe(true);
  }

  #states(): unknown {
    return [...this.#scopes.values()].map((scopes) => this.#store.peek(scopes));
  }
}

test("the limiter answers and counts like its plain model in every history", () => {
  fc.assert(
    fc.property(history, (drawn) => {
      const comparison = new Comparison(drawn);
      for (const next of drawn.steps) comparison.run(next);
    }),
    { numRuns: runsOf(2_500), includeErrorInReport: true },
  );
}, 180_000);
