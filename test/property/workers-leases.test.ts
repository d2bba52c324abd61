import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Clock } from "../../src/domain/clock.ts";
import {
  minuteScopes,
  type CountedRequest,
  type LimitScope,
} from "../../src/domain/limits/limit-scope.ts";
import { createMemoryLimitStore } from "../../src/store/coordinator/memory/limit-store.ts";
import type { LimitStore } from "../../src/store/store.ts";
import { CoordinationWorld } from "../support/coordination-world.ts";
import { sizeOf } from "../support/requirement.ts";

const bounds = { reservationTtlMs: 24 * 3_600_000, scopeLimit: 1_000 };
/** Keys of one account, which allows less than both together. */
const keys = { a: { requests: 60, tokens: 900 }, b: { requests: 90, tokens: 2_000 } } as const;
const account = { requests: 110, tokens: 2_500 };
const overrunFactor = 2;

type Step =
  | {
      readonly kind: "burst";
      readonly key: keyof typeof keys;
      /** Of each call. */
      readonly workers: readonly number[];
      readonly tokens: number;
      readonly overrun: number;
      readonly sort: "call" | "uncounted" | "count";
    }
  | { readonly kind: "wait"; readonly ms: number }
  | {
      readonly kind: "settle";
      readonly first: number;
      readonly calls: number;
      readonly part: number;
    }
  | { readonly kind: "uncount"; readonly call: number };

function burstOf(workers: fc.Arbitrary<readonly number[]>, mostTokens: number) {
  return fc.record({
    kind: fc.constant("burst" as const),
    key: fc.constantFrom("a" as const, "b" as const),
    workers,
    tokens: fc.integer({ min: 0, max: mostTokens }),
    overrun: fc.constantFrom(0, 0, 0, 30),
    sort: fc.constantFrom("call" as const, "call" as const, "uncounted" as const, "count" as const),
  });
}

function waitOf(...ms: readonly number[]): fc.Arbitrary<Step> {
  return fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(...ms) });
}

/** Most calls come to one worker, which therefore has leases. */
const skewed = fc.array(fc.constantFrom(0, 0, 0, 0, 1, 2), { minLength: 1, maxLength: 6 });
const flood = fc.constantFrom(0, 1, 2).map((worker) => Array.from({ length: 100 }, () => worker));
const settle = fc.record({
  kind: fc.constant("settle" as const),
  first: fc.nat(60),
  calls: fc.integer({ min: 1, max: 10 }),
  part: fc.constantFrom(0, 0.5, 1),
});
const uncount = fc.record({ kind: fc.constant("uncount" as const), call: fc.nat(20) });
const small = fc.oneof(
  { weight: 6, arbitrary: burstOf(skewed, 12) },
  { weight: 3, arbitrary: waitOf(1, 50, 90, 200) },
  { weight: 2, arbitrary: settle },
  { weight: 1, arbitrary: uncount },
);
const round = fc
  .tuple(
    fc.array(small, { minLength: 3, maxLength: 10 }),
    waitOf(0, 500, 1_000, 1_010, 2_500),
    fc.array(small, { maxLength: 6 }),
    waitOf(0, 0, 1_000, 7_000, 58_000, 59_000, 60_000, 61_000),
    fc.array(burstOf(flood, 3), { maxLength: 2 }),
  )
  .map((parts): readonly Step[] => parts.flat());

type Burst = Extract<Step, { kind: "burst" }>;

/** A call that both have admitted. */
interface Open {
  readonly at: LimitStore;
  readonly callId: string;
  readonly otherId: string;
  readonly tokens: number;
}

interface Counted {
  readonly at: LimitStore;
  readonly counted: CountedRequest;
  readonly other: CountedRequest;
}

interface Granted {
  readonly at: LimitStore;
  readonly callId: string;
  readonly counted: CountedRequest | undefined;
}

/** Several workers beside one store in one process, which gets the same calls. */
class Comparison {
  readonly #world = new CoordinationWorld({ workers: 3, skewMs: 0, bounds, ledger: () => [] });
  readonly #single;
  readonly #open: Open[] = [];
  readonly #counted: Counted[] = [];
  #calls = 0;
  leased = 0;

  constructor() {
    const startedAt = this.#world.clock.monotonic();
    const common: Clock = {
      now: () => this.#world.clock.now(),
      monotonic: () => this.#world.clock.monotonic() - startedAt,
      schedule: () => () => undefined,
    };
    this.#single = createMemoryLimitStore({ ...bounds, clock: common, random: () => 0 });
  }

  start(): Promise<void> {
    return this.#world.start();
  }

  async run(step: Step): Promise<void> {
    switch (step.kind) {
      case "wait":
        this.#world.advance(step.ms);
        return;
      case "burst":
        await this.#burst(step);
        return;
      case "settle":
        for (const call of this.#open.splice(step.first, step.calls)) {
          const used = Math.floor(call.tokens * step.part);
          void call.at.settle(call.callId, used);
          this.#single.settle(call.otherId, used);
        }
        // What is free is free for all only when it is known.
        await this.#world.settle();
        return;
      case "uncount":
        for (const { at, counted, other } of this.#counted.splice(step.call, 1)) {
          void at.uncount(counted);
          this.#single.uncount(other);
        }
        await this.#world.settle();
        return;
    }
  }

  /** Whichever worker gets a call, as many are admitted as by one process. */
  async #burst(burst: Burst): Promise<void> {
    const { key, workers, sort } = burst;
    const scopes = [
      ...minuteScopes(`key:${key}`, limitsOf(keys[key]), { overrunFactor }),
      ...minuteScopes("account:one", limitsOf(account), { overrunFactor }),
    ];
    const asked = workers.map((worker) => {
      const at = this.#world.workers[worker]?.limits;
      if (at === undefined) throw new Error("there is no such worker");
      return this.#ask(at, scopes, burst);
    });
    await this.#world.settle();
    const granted = (await Promise.all(asked)).filter((one) => one !== undefined);
    const others: Granted[] = [];
    for (const _ of workers) {
      const other = await this.#ask(this.#single, scopes, burst);
      if (other !== undefined) others.push(other);
    }
    expect(granted.length).toBe(others.length);
    granted.forEach((one, index) => {
      const other = others[index];
      if (other === undefined) return;
      const { at, callId, counted } = one;
      if (sort !== "count") {
        this.#open.push({ at, callId, otherId: other.callId, tokens: burst.tokens });
      } else if (counted !== undefined && other.counted !== undefined) {
        this.#counted.push({ at, counted, other: other.counted });
      }
    });
  }

  async #ask(
    at: LimitStore,
    scopes: readonly LimitScope[],
    { sort, tokens, overrun }: Burst,
  ): Promise<Granted | undefined> {
    this.#calls += 1;
    const callId = `call ${this.#calls}`;
    const counting = sort === "uncounted" ? undefined : at.count(scopes);
    const decision = await counting;
    if (decision?.isAdmitted === false) return undefined;
    const counted = decision?.counted;
    if (sort === "count") return { at, callId, counted };
    const mostTokens = tokens + overrun;
    const acquiring = at.acquire({ callId, scopes, tokens, mostTokens, counted });
    if (at !== this.#single && !(acquiring instanceof Promise)) this.leased += 1;
    return (await acquiring).isAdmitted ? { at, callId, counted } : undefined;
  }
}

function limitsOf({ requests, tokens }: { readonly requests: number; readonly tokens: number }) {
  return { requestsPerMinute: requests, tokensPerMinute: tokens };
}

test("several workers admit as many calls as one process, whatever they have leased", async () => {
  let leased = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(round, { minLength: 1, maxLength: 4 }), async (rounds) => {
      const run = new Comparison();
      await run.start();
      for (const one of rounds.flat()) await run.run(one);
      leased += run.leased;
    }),
    { numRuns: sizeOf({ quick: 100, all: 2_000, measured: 10_000 }) },
  );
  expect(leased).toBeGreaterThan(0);
}, 900_000);
