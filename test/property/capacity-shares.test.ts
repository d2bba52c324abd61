import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  floorTokens,
  guaranteedTokens,
  sellableUnits,
  type Pool,
} from "../../src/domain/limits/capacity.ts";
import { Random } from "../../simulator/answer/random.ts";
import type { Place, PlaceRequest } from "../../src/admission/capacity/place.ts";
import {
  CapacityWorld,
  isServed,
  placeOf,
  plainPool,
  type Asked,
} from "../support/capacity-world.ts";
import { runsOf, sizeOf } from "../support/requirement.ts";
import { report } from "../support/scorecard.ts";

/** Calls at random times, with this average a second. */
interface Stream {
  readonly wish: Partial<PlaceRequest>;
  readonly perSecond: number;
  readonly waitMs: number;
}

interface Load {
  readonly seconds: number;
  /** How long each call holds its place. */
  readonly holdMs: number;
  /** The used share of the reservation. */
  readonly usedShare: number;
  readonly random: Random;
}

/** Runs streams of calls until the time is over and returns their results. */
function run(world: CapacityWorld, streams: readonly Stream[], load: Load): Asked[][] {
  const { time } = world;
  const endsAt = time.now + load.seconds * 1_000;
  return streams.map((stream) => {
    const calls: Asked[] = [];
    const { waitMs } = stream;
    const arrive = (): void => {
      if (time.now >= endsAt) return;
      const onPlace = (place: Place): void => {
        time.schedule(() => {
          place.settle(Math.round((stream.wish.tokens ?? 0) * load.usedShare));
          place.leave();
        }, load.holdMs);
      };
      calls.push(world.ask(stream.wish, { waitMs, onPlace }));
      next();
    };
    const next = (): void => {
      time.schedule(arrive, (-Math.log(1 - load.random.next()) * 1_000) / stream.perSecond);
    };
    next();
    return calls;
  });
}

function shareServed(calls: readonly Asked[]): number {
  return calls.filter(isServed).length / calls.length;
}

function smallStreams(count: number, stream: Omit<Stream, "wish"> & { tokens: number }): Stream[] {
  const { tokens } = stream;
  return Array.from({ length: count }, (_, index) => ({
    ...stream,
    wish: { accountId: `small ${index}`, tokens },
  }));
}

const runs = runsOf(3);
/** Of a flood. */
const minutes = sizeOf({ quick: 4, all: 10, measured: 10 });
const seeds = fc.integer({ min: 0, max: 2 ** 31 });

describe("places", () => {
  describe("one large and fifty small accounts", () => {
    test("share the places of a pool: the small ones get all they want", () => {
      let worst = 1;
      fc.assert(
        fc.property(seeds, (seed) => {
          const world = new CapacityWorld({
            pools: [{ ...plainPool, tokensPerMinute: 1e12, maxInFlight: 8 }],
          });
          // 160 calls a second fit; the large account alone wants five times as much.
          const heavy = {
            wish: { accountId: "large", tokens: 100 },
            perSecond: 800,
            waitMs: 2_000,
          };
          const small = smallStreams(50, { tokens: 100, perSecond: 1, waitMs: 2_000 });
          const load = { seconds: 20, holdMs: 50, usedShare: 1, random: new Random(seed) };
          const [large = [], ...others] = run(world, [heavy, ...small], load);
          world.pass((load.seconds + 10) * 1_000);
          const served = shareServed(others.flat());
          worst = Math.min(worst, served);
          expect(served).toBeGreaterThanOrEqual(0.999);
          // The large account gets the rest.
          expect(large.filter(isServed).length).toBeGreaterThan(20 * 100);
        }),
        { numRuns: runs },
      );
      report({
        check: "P5 places",
        name: `small accounts served beside a large one of 5 x the pool's places (model, worst of ${runs})`,
        value: `${(worst * 100).toFixed(2)} %`,
        limit: ">= 99.9 %",
        isMet: worst >= 0.999,
      });
    }, 120_000);

    test("share the tokens of a pool from the first second on, although one could use them all", () => {
      let worst = 1;
      fc.assert(
        fc.property(seeds, (seed) => {
          const world = new CapacityWorld({
            pools: [{ ...plainPool, tokensPerMinute: 600_000, maxInFlight: undefined }],
          });
          const heavy = {
            wish: { accountId: "large", tokens: 1_000 },
            perSecond: 50,
            waitMs: 5_000,
          };
          // A tenth of the pool, in total.
          const small = smallStreams(50, { tokens: 1_000, perSecond: 0.02, waitMs: 2_000 });
          const load = { seconds: 300, holdMs: 500, usedShare: 0.8, random: new Random(seed) };
          const [large = [], ...others] = run(world, [heavy, ...small], load);
          world.pass((load.seconds + 10) * 1_000);
          const served = shareServed(others.flat());
          worst = Math.min(worst, served);
          expect(served).toBeGreaterThanOrEqual(0.999);
          const largeTokens = large.filter(isServed).length * 800;
          expect(largeTokens).toBeGreaterThan(600_000 * 5 * 0.85);
        }),
        { numRuns: runs },
      );
      report({
        check: "P5 tokens",
        name: `small accounts served beside a large one of 5 x the pool's tokens (model, worst of ${runs})`,
        value: `${(worst * 100).toFixed(2)} %`,
        limit: ">= 99.9 %",
        isMet: worst >= 0.999,
      });
    }, 120_000);
  });

  describe("a pool that is sold out, under a flood of five times its capacity", () => {
    const pool: Pool = {
      ...plainPool,
      tokensPerMinute: 600_000,
      maxInFlight: 50,
      unitTokensPerMinute: 1_000,
    };
    const flood = (accounts: number): Stream[] =>
      Array.from({ length: accounts }, (_, index) => ({
        wish: { accountId: `flood ${index}`, tokens: 1_000 },
        perSecond: 50 / accounts,
        waitMs: 1_000,
      }));

    test.each([1, 5])(
      "never lets its buyers wait, and gives the rest to others: %d of them",
      (accounts) => {
        const world = new CapacityWorld({ pools: [pool] });
        const sold = sellableUnits(pool);
        world.sell(sold, { key: "buyer" });
        // The whole guarantee, in calls ten times longer than the others.
        const perSecond = guaranteedTokens(sold, pool) / 60 / 1_000;
        const buyers: Stream = {
          wish: { accountId: "buyer", tokens: 1_000, capacityClass: "provisioned" },
          perSecond,
          waitMs: 0,
        };
        const seconds = minutes * 60;
        const load = { seconds, holdMs: 500, usedShare: 1, random: new Random(accounts) };
        const [own = [], ...others] = run(world, [buyers, ...flood(accounts)], load);
        world.pass((load.seconds + 10) * 1_000);
        expect(own.length).toBeGreaterThan(seconds * perSecond * 0.9);
        expect(own.filter((asked) => !isServed(asked))).toEqual([]);
        expect(Math.max(...own.map((asked) => placeOf(asked).waitedMs))).toBe(0);
        const tokens = others.flat().filter(isServed).length * 1_000;
        const share = tokens / (floorTokens(pool) * minutes);
        report({
          check: `P3 of ${accounts}`,
          name: `on-demand tokens under a flood by ${accounts} accounts, of the floor (model, ${minutes} min)`,
          value: `${(share * 100).toFixed(1)} %`,
          limit: ">= 95 %",
          isMet: share >= 0.95,
        });
        expect(share).toBeGreaterThanOrEqual(0.95);
      },
      120_000,
    );
  });
});
