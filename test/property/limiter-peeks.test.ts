import { expect, test } from "bun:test";
import fc from "fast-check";
import { type LimitScope, minuteScopes } from "../../src/domain/limits/limit-scope.ts";
import { MemoryLimitStore } from "../../src/store/limits/memory/limit-store.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { runsOf } from "../support/requirement.ts";

const scopes = fc
  .record({
    id: fc.constantFrom("key", "account"),
    requestsPerMinute: fc.integer({ min: 0, max: 6 }),
    tokensPerMinute: fc.integer({ min: 1, max: 100 }),
    seconds: fc.constantFrom(60, 120, 600, 3_600),
  })
  .map(({ id, seconds, ...limits }): readonly LimitScope[] => [
    ...minuteScopes(id, limits, { overrunFactor: 3 }),
    { id, unit: "tokens", window: { seconds }, limit: limits.tokensPerMinute * (seconds / 60) },
  ]);

const tokens = fc.integer({ min: 0, max: 300 });
const kind = <Kind extends string>(name: Kind) => fc.constant(name);
const step = fc.oneof(
  fc.record({ kind: kind("wait"), ms: fc.constantFrom(1, 999, 5_000, 61_000, 130_000, 4_000_000) }),
  fc.record({
    kind: kind("acquire"),
    scopes,
    tokens: fc.integer({ min: 0, max: 45 }),
    most: tokens,
  }),
  fc.record({ kind: kind("use"), call: fc.nat(20), tokens }),
  fc.record({ kind: kind("settle"), call: fc.nat(20), tokens }),
  // Each unit or sort of window alone, too.
  fc.record({ kind: kind("peek"), scopes, from: fc.nat(2) }),
);

test("whoever reads limits, with any period and any limit, changes no decision", () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 5, maxLength: 60 }), (steps) => {
      const clock = new ManualClock();
      const [read, unread] = [1, 2].map(() => new MemoryLimitStore({ clock, random: () => 0 }));
      if (read === undefined || unread === undefined) throw new Error("there are no stores");
      let calls = 0;
      for (const next of steps) {
        switch (next.kind) {
          case "wait":
            clock.advance(next.ms);
            break;
          case "acquire": {
            const mostTokens = Math.max(next.tokens, next.most);
            const { scopes: under, tokens: reserved } = next;
            const request = { callId: `${calls++}`, scopes: under, tokens: reserved, mostTokens };
            expect(read.acquire(request)).toEqual(unread.acquire(request));
            break;
          }
          case "use":
          case "settle":
            for (const store of [read, unread]) store[next.kind](`${next.call}`, next.tokens);
            break;
          case "peek":
            read.peek(next.scopes.slice(next.from));
            break;
        }
      }
      expect(read.scopeCount).toBeLessThanOrEqual(2 * 3);
    }),
    { numRuns: runsOf(2_000), includeErrorInReport: true },
  );
}, 180_000);
