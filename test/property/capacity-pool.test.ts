import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { sellableUnits, type Pool } from "../../src/domain/limits/capacity.ts";
import type { CapacityClass } from "../../src/domain/usage/usage.ts";
import type { Place } from "../../src/admission/capacity/place.ts";
import type { TokenLimits } from "../../src/store/limits/limit-store.ts";
import {
  CapacityWorld,
  isServed,
  placeOf,
  plainPool,
  type Asked,
} from "../support/capacity-world.ts";
import { runsOf } from "../support/requirement.ts";
import { openPlaces, openTokens } from "../../src/admission/capacity/guarantee.ts";

type Step =
  | { kind: "ask"; account: string; of: CapacityClass; tokens: number; waitMs: number }
  | { kind: "end"; which: number; usedShare: number }
  | { kind: "leave"; which: number }
  | { kind: "pass"; ms: number }
  | { kind: "sell"; to: string; share: number }
  | { kind: "reload"; tokensPerMinute: number; places: number | undefined }
  | { kind: "queue"; limit: number };

const accounts = ["a", "b", "c"];
const ms = fc.oneof(
  fc.constantFrom(0, 1, 500, 1_000, 5_000, 60_000, 61_000),
  fc.integer({ min: 0, max: 20_000 }),
);
const tokensPerMinute = fc.integer({ min: 1_000, max: 100_000 });
const places = fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined });
const ask: fc.Arbitrary<Step> = fc.record({
  kind: fc.constant("ask" as const),
  account: fc.constantFrom(...accounts),
  of: fc.constantFrom<CapacityClass>("provisioned", "spillover", "on-demand", "on-demand"),
  tokens: fc.integer({ min: 0, max: 20_000 }),
  waitMs: fc.constantFrom(0, 100, 2_000, 30_000, 600_000),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: ask },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("end" as const),
      which: fc.nat(50),
      usedShare: fc.constantFrom(0, 0.3, 1),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("leave" as const), which: fc.nat(50) }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("pass" as const), ms }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("sell" as const),
      to: fc.constantFrom(...accounts),
      share: fc.double({ min: 0, max: 0.6, noNaN: true }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("reload" as const), tokensPerMinute, places }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("queue" as const), limit: fc.nat(8) }),
  },
);
const history = fc.record({
  pool: fc.record({ tokensPerMinute, places }),
  answerMs: fc.constantFrom(undefined, undefined, 0, 3),
  steps: fc.array(step, { minLength: 5, maxLength: 80 }),
});

interface Held {
  readonly asked: Asked;
  readonly place: Place;
  readonly at: number;
  /** The counted tokens: the reservation, then the used ones. */
  tokens: number;
  isOver: boolean;
}

/** One history, with all grants. */
class Witness {
  readonly world: CapacityWorld;
  readonly asked: Asked[] = [];
  readonly held: Held[] = [];
  readonly #known = new Set<Asked>();
  #pool: Pool;
  #largestQueue = 8;
  /** Limits were lowered while more was held. */
  #mayHoldMore = 0;
  /** Places that guarantees lack, because others held them when they were sold. */
  #mayBeShort = 0;

  constructor(pool: Pool, answerMs: number | undefined) {
    this.#pool = pool;
    this.world = new CapacityWorld({
      pools: [pool],
      queueLimit: 8,
      ...(answerMs !== undefined && { wrap: answeringAfter(answerMs) }),
    });
  }

  run(next: Step): void {
    const { world } = this;
    switch (next.kind) {
      case "ask": {
        const { account: accountId, of: capacityClass, tokens, waitMs } = next;
        const isOwed = capacityClass === "provisioned" && this.#isOwed(accountId);
        const asked = world.ask({ accountId, capacityClass, tokens }, { waitMs });
        this.asked.push(asked);
        if (isOwed) expect(isServed(asked)).toBe(true);
        break;
      }
      case "end":
        this.#end(this.#running()[next.which % (this.#running().length + 1)], next.usedShare);
        break;
      case "leave":
        this.asked[next.which % (this.asked.length + 1)]?.leave();
        break;
      case "pass":
        world.pass(next.ms);
        break;
      case "sell":
        world.sell(Math.floor(sellableUnits(this.#pool) * next.share), { key: next.to });
        world.capacity.unitsChanged();
        this.#noteLowered();
        break;
      case "reload":
        this.#pool = {
          ...this.#pool,
          tokensPerMinute: next.tokensPerMinute,
          maxInFlight: next.places,
        };
        world.reload([this.#pool]);
        this.#noteLowered();
        break;
      case "queue":
        world.queueLimit = next.limit;
        break;
    }
    world.pass(0);
    this.#collect();
    this.#check();
  }

  /** Ends all calls; nothing may stay held. */
  finish(): void {
    for (let round = 0; round < 200; round++) {
      for (const held of this.#running()) this.#end(held, 1);
      this.world.pass(61_000);
      this.#collect();
    }
    for (const asked of this.asked) expect(asked.result).toBeDefined();
    for (const of of classes) {
      expect(this.world.queued(of)).toBe(0);
      expect(this.world.held(of)).toBe(0);
    }
  }

  #running(): Held[] {
    return this.held.filter(({ isOver }) => !isOver);
  }

  #heldCount(): number {
    return classes.reduce((sum, of) => sum + this.world.held(of), 0);
  }

  #end(held: Held | undefined, usedShare: number): void {
    if (held === undefined) return;
    held.tokens = Math.floor(held.tokens * usedShare);
    held.isOver = true;
    held.place.settle(held.tokens);
    held.place.leave();
    held.place.leave();
  }

  #collect(): void {
    for (const asked of this.asked) {
      if (this.#known.has(asked) || asked.result === undefined) continue;
      this.#known.add(asked);
      if (!isServed(asked)) continue;
      const { tokens } = asked.request;
      const at = asked.endedAt ?? 0;
      this.held.push({ asked, place: placeOf(asked), at, tokens, isOver: false });
    }
  }

  #noteLowered(): void {
    this.#mayHoldMore = Math.max(this.#mayHoldMore, this.#heldCount());
    this.#mayBeShort = Math.max(this.#mayBeShort, this.#shortage());
  }

  #ownPlaces(account: string): number {
    const { maxInFlight = 0, tokensPerMinute, unitTokensPerMinute } = this.#pool;
    const units = this.world.soldTo(account);
    return Math.floor((maxInFlight * units * unitTokensPerMinute) / tokensPerMinute);
  }

  #ownHeld(account: string): number {
    const isOwn = ({ accountId, capacityClass }: Asked["request"]): boolean =>
      accountId === account && capacityClass === "provisioned";
    return this.#running().filter(({ asked }) => isOwn(asked.request)).length;
  }

  /** Whether a call would have one of the places that the account's units guarantee. */
  #isOwed(account: string): boolean {
    const { maxInFlight = Infinity } = this.#pool;
    return this.#ownHeld(account) < this.#ownPlaces(account) && this.#heldCount() < maxInFlight;
  }

  /** The places that all guarantees together would lack; one place is for everybody. */
  #shortage(): number {
    const { maxInFlight } = this.#pool;
    if (maxInFlight === undefined) return 0;
    const own = accounts.map((account) => this.#ownPlaces(account));
    const used = accounts.map((account, index) =>
      Math.min(this.#ownHeld(account), own[index] ?? 0),
    );
    const kept = Math.min(sumOf(own), maxInFlight - 1);
    const unused = kept - sumOf(used) - this.#heldForNext();
    return this.#heldCount() + Math.max(0, unused) - maxInFlight;
  }

  /** Places within guarantees that a process keeps for the next attempt, or that wait for tokens. */
  #heldForNext(): number {
    const isOwn = ({ asked }: Held): boolean => asked.request.capacityClass === "provisioned";
    return this.world.held("provisioned") - this.#running().filter(isOwn).length;
  }

  #check(): void {
    const { world } = this;
    const sold = sumOf(accounts.map((account) => world.soldTo(account)));
    const running = this.#running();
    const open = running.filter(({ asked }) => asked.request.capacityClass !== "provisioned");
    // Exactly the granted places are held, except those of pending requests.
    const heldCount = this.#heldCount();
    expect(heldCount).toBeGreaterThanOrEqual(running.length);
    this.#mayHoldMore = Math.min(this.#mayHoldMore, heldCount);
    const placeLimit = this.#pool.maxInFlight ?? Infinity;
    expect(running.length).toBeLessThanOrEqual(Math.max(placeLimit, this.#mayHoldMore));
    const openLimit = openPlaces(this.#pool, sold);
    expect(open.length).toBeLessThanOrEqual(Math.max(openLimit, this.#mayHoldMore));
    this.#largestQueue = Math.max(this.#largestQueue, world.queueLimit);
    const openWaiting = world.queued("spillover") + world.queued("on-demand");
    expect(openWaiting).toBeLessThanOrEqual(this.#largestQueue);
    expect(world.queued("provisioned")).toBeLessThanOrEqual(this.#largestQueue);
    const short = this.#shortage();
    expect(short).toBeLessThanOrEqual(Math.max(0, this.#mayBeShort));
    this.#mayBeShort = Math.min(this.#mayBeShort, short);
    // A call within a guarantee waits only for a place that is not guaranteed to others.
    if (world.queued("provisioned") > 0) {
      expect(heldCount >= placeLimit || short >= 0).toBe(true);
    }
  }
}

const classes = ["provisioned", "spillover", "on-demand"] as const;
function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}

function answeringAfter(answerMs: number) {
  return (store: TokenLimits, time: CapacityWorld["time"]): TokenLimits => ({
    async acquire(request) {
      await time.sleep(answerMs);
      const decision = store.acquire(request);
      await time.sleep(answerMs);
      return decision;
    },
    settle: (callId, tokens) => store.settle(callId, tokens),
  });
}

function poolOf(drawn: { tokensPerMinute: number; places: number | undefined }): Pool {
  return {
    ...plainPool,
    tokensPerMinute: drawn.tokensPerMinute,
    maxInFlight: drawn.places,
    unitTokensPerMinute: 100,
  };
}

describe("places", () => {
  describe("in every history of a pool", () => {
    test("no call is lost or served twice, places and queue are bounded, guarantees go first", () => {
      fc.assert(
        fc.property(history, ({ pool, answerMs, steps }) => {
          const witness = new Witness(poolOf(pool), answerMs);
          for (const next of steps) witness.run(next);
          witness.finish();
        }),
        { numRuns: runsOf(1_500) },
      );
    }, 120_000);

    test("calls without a guarantee never get sold tokens, in any 60 seconds", () => {
      fc.assert(
        fc.property(
          history,
          fc.double({ min: 0, max: 1, noNaN: true }),
          ({ pool: drawn, answerMs, steps }, share) => {
            const pool = poolOf(drawn);
            const witness = new Witness(pool, answerMs);
            const sold = Math.floor(sellableUnits(pool) * share);
            witness.world.sell(sold, { key: "a" });
            for (const next of steps) {
              if (next.kind !== "sell" && next.kind !== "reload") witness.run(next);
            }
            const open = witness.held.filter(
              ({ asked }) => asked.request.capacityClass !== "provisioned",
            );
            for (const first of open) {
              const together = open.filter(({ at }) => at >= first.at && at <= first.at + 60_000);
              const tokens = together.reduce((sum, held) => sum + held.tokens, 0);
              expect(tokens).toBeLessThanOrEqual(openTokens(pool, sold));
            }
          },
        ),
        { numRuns: runsOf(1_000) },
      );
    }, 120_000);

    test("an account's on-demand calls are served in the order of their arrival", () => {
      fc.assert(
        fc.property(history, ({ pool, steps }) => {
          const witness = new Witness(poolOf(pool), undefined);
          for (const next of steps) {
            witness.run(next.kind === "ask" ? { ...next, waitMs: 600_000 } : next);
          }
          for (const account of ["a", "b", "c"]) {
            const served = witness.asked.filter(
              (asked) =>
                asked.request.accountId === account &&
                asked.request.capacityClass !== "provisioned" &&
                isServed(asked),
            );
            const times = served.map(({ endedAt }) => endedAt ?? 0);
            expect(times).toEqual(times.toSorted((one, other) => one - other));
          }
        }),
        { numRuns: runsOf(500) },
      );
    }, 120_000);
  });
});
