import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Place } from "../../src/admission/capacity/place.ts";
import type { TokenLimits } from "../../src/store/limits/limit-store.ts";
import { CapacityWorld, plainPool, type Asked } from "../support/capacity-world.ts";
import { upstreamOf } from "../support/pipeline-fixtures.ts";
import { runsOf } from "../support/requirement.ts";

/** Every place where a call may want to go: in two pools or in none, at two upstreams. */
const spots = ["p@u", "p@v", "q@u", "q@v", "upstream:u", "upstream:v"] as const;
type SpotName = (typeof spots)[number];
const accounts = ["a", "b", "c"];

type Step =
  | {
      kind: "ask";
      account: string;
      isSpilled: boolean;
      at: SpotName[];
      waitMs: number;
      times: number;
    }
  | { kind: "end"; which: number[] }
  | { kind: "leave"; which: number }
  | { kind: "pass"; ms: number }
  | { kind: "answer" | "overload"; at: SpotName; account: string }
  | { kind: "reload"; bounds: Bounds };

interface Bounds {
  readonly p: number;
  readonly q: number;
  readonly u: number;
  readonly v: number;
}

const most = fc.integer({ min: 1, max: 15 });
const bounds: fc.Arbitrary<Bounds> = fc.record({ p: most, q: most, u: most, v: most });
const ask: fc.Arbitrary<Step> = fc.record({
  kind: fc.constant("ask" as const),
  account: fc.constantFrom(...accounts),
  isSpilled: fc.boolean(),
  at: fc.uniqueArray(fc.constantFrom(...spots), { minLength: 1, maxLength: 4 }),
  waitMs: fc.constantFrom(0, 100, 2_000, 600_000, 600_000),
  times: fc.constantFrom(1, 1, 1, 4, 12),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: ask },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("end" as const),
      which: fc.array(fc.nat(60), { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("leave" as const), which: fc.nat(60) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("pass" as const),
      ms: fc.constantFrom(0, 1, 3, 100, 999, 1_000, 5_000, 10_000),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom("answer" as const, "overload" as const),
      at: fc.constantFrom(...spots),
      account: fc.constantFrom(...accounts),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("reload" as const), bounds }) },
);
const history = fc.record({
  bounds,
  answerMs: fc.constantFrom(undefined, undefined, 0, 3),
  steps: fc.array(step, { minLength: 5, maxLength: 80 }),
});

interface Call {
  readonly asked: Asked;
  readonly at: readonly SpotName[];
  readonly waitMs: number;
  place: Place | undefined;
  isSeen: boolean;
}

/** One history, with every call and the place that it holds. */
class Witness {
  readonly world: CapacityWorld;
  readonly #calls: Call[] = [];
  /** Whether the store answers at once, so that every place in use is held by a call. */
  readonly #isPrompt: boolean;
  #bounds: Bounds;
  /** In use when bounds were lowered. */
  #mayHold: Bounds = { p: 0, q: 0, u: 0, v: 0 };

  constructor(first: Bounds, answerMs: number | undefined) {
    this.#bounds = first;
    this.#isPrompt = answerMs === undefined;
    this.world = new CapacityWorld({
      pools: poolsOf(first),
      upstreams: upstreamsOf(first),
      queueLimit: 10_000,
      ...(answerMs !== undefined && { wrap: answeringAfter(answerMs) }),
    });
  }

  run(next: Step): void {
    const { world } = this;
    switch (next.kind) {
      case "ask":
        for (let time = 0; time < next.times; time += 1) this.#ask(next);
        break;
      case "end": {
        const held = this.#calls.filter(({ place }) => place !== undefined);
        for (const which of next.which) leave(held[which]);
        break;
      }
      case "leave":
        this.#calls[next.which]?.asked.leave();
        break;
      case "pass":
        world.pass(next.ms);
        break;
      case "answer":
      case "overload":
        this.#learn(next.kind, next.at, next.account);
        break;
      case "reload":
        this.#mayHold = this.#inUse();
        this.#bounds = next.bounds;
        world.reload(poolsOf(next.bounds), upstreamsOf(next.bounds));
        break;
    }
    this.#collect();
    this.#check();
  }

  /** All calls end, and nothing may be left of them. */
  finish(): void {
    for (let round = 0; round < 300; round += 1) {
      for (const call of this.#calls) leave(call);
      this.world.pass(3_000);
      this.#collect();
    }
    for (const { asked } of this.#calls) expect(asked.result).toBeDefined();
    expect(this.#inUse()).toEqual({ p: 0, q: 0, u: 0, v: 0 });
    for (const spot of spots) expect(this.#limitAt(spot).inFlight).toBe(0);
    for (const view of this.world.capacity.views()) {
      expect(Object.values(view.queued)).toEqual([0, 0, 0]);
      expect(Object.values(view.inFlight)).toEqual([0, 0, 0]);
    }
  }

  #ask({ account: accountId, isSpilled, at, waitMs }: Extract<Step, { kind: "ask" }>): void {
    const capacityClass = isSpilled ? "spillover" : "on-demand";
    const asked = this.world.ask({ accountId, capacityClass, tokens: 1 }, { at, waitMs });
    this.#calls.push({ asked, at, waitMs, place: undefined, isSeen: false });
    this.#collect();
  }

  #learn(kind: "answer" | "overload", at: SpotName, account: string): void {
    const limit = this.#limitAt(at);
    const nowMs = this.world.clock.monotonic();
    if (kind === "answer") return limit.succeeded(account, nowMs);
    for (let count = 0; count < 20; count += 1) limit.overloaded(account, nowMs);
  }

  /** Notes the calls that were served, each after all that came before it for the same. */
  #collect(): void {
    this.world.pass(0);
    for (const call of this.#calls) {
      const { asked } = call;
      if (call.isSeen || asked.result === undefined) continue;
      call.isSeen = true;
      if (!("place" in asked.result)) continue;
      call.place = asked.result.place;
      if (this.#isPrompt) this.#checkOrder(call, call.at[asked.result.at]);
    }
  }

  #checkOrder(served: Call, at: SpotName | undefined): void {
    expect(at).toBeDefined();
    const before = this.#calls.slice(0, this.#calls.indexOf(served));
    const overtaken = before.filter(
      ({ asked, at: wanted }) =>
        asked.result === undefined &&
        asked.request.accountId === served.asked.request.accountId &&
        wanted.some((spot) => spot === at),
    );
    expect(overtaken).toEqual([]);
  }

  #check(): void {
    const inUse = this.#inUse();
    for (const name of ["p", "q", "u", "v"] as const) {
      expect(inUse[name]).toBeLessThanOrEqual(Math.max(this.#bounds[name], this.#mayHold[name]));
    }
    this.#mayHold = inUse;
    if (!this.#isPrompt) return;
    for (const spot of spots) {
      const held = this.#calls.filter(({ asked, at, place }) => {
        const { result } = asked;
        return (
          place !== undefined && result !== undefined && "at" in result && at[result.at] === spot
        );
      });
      expect(this.world.inFlightAt(targetAt(spot))).toBe(held.length);
    }
    const stuck = this.#calls.filter(
      ({ asked, at }) =>
        asked.result === undefined && at.some((spot) => this.#hasRoom(spot, asked, inUse)),
    );
    // To look at a limit that has ended serves who waits for it.
    this.#collect();
    expect(stuck.filter(({ asked }) => asked.result === undefined)).toEqual([]);
  }

  #hasRoom(spot: SpotName, { request }: Asked, inUse: Bounds): boolean {
    const [pool, upstream] = namesOf(spot);
    const isFull = (name: keyof Bounds): boolean => inUse[name] >= this.#bounds[name];
    if ((pool !== undefined && isFull(pool)) || isFull(upstream)) return false;
    return this.#limitAt(spot).hasRoom(request.keyId, this.world.clock.monotonic());
  }

  #limitAt(spot: SpotName) {
    return this.world.limitOf(targetAt(spot));
  }

  #inUse(): Bounds {
    const { world } = this;
    const held = (pool: string): number =>
      world.held("spillover", pool) + world.held("on-demand", pool);
    const [u, v] = [world.requestsAt("u"), world.requestsAt("v")];
    return { p: held("p"), q: held("q"), u, v };
  }
}

function leave(call: Call | undefined): void {
  call?.place?.leave();
  if (call !== undefined) call.place = undefined;
}

function targetAt(spot: SpotName): string {
  const [pool, upstream] = namesOf(spot);
  return `${upstream}/${pool ?? "m"}`;
}

function namesOf(spot: SpotName): readonly ["p" | "q" | undefined, "u" | "v"] {
  const upstream = spot.endsWith("u") ? "u" : "v";
  if (spot.startsWith("upstream")) return [undefined, upstream];
  return [spot.startsWith("p") ? "p" : "q", upstream];
}

function poolsOf({ p, q }: Bounds) {
  const pool = { ...plainPool, tokensPerMinute: 1e12 };
  return [
    { ...pool, name: "p", maxInFlight: p },
    { ...pool, name: "q", maxInFlight: q },
  ];
}

function upstreamsOf({ u, v }: Bounds) {
  return [upstreamOf("u", { maxInFlight: u }), upstreamOf("v", { maxInFlight: v })];
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

describe("places", () => {
  test("places are bounded, none is lost, nobody is overtaken, and who finds room does not wait", () => {
    fc.assert(
      fc.property(history, ({ bounds: first, answerMs, steps }) => {
        const witness = new Witness(first, answerMs);
        for (const next of steps) witness.run(next);
        witness.finish();
      }),
      { numRuns: runsOf(500) },
    );
  }, 120_000);
});
