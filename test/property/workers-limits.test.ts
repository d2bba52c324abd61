import { expect, test } from "bun:test";
import fc from "fast-check";
import { keyScopeId } from "../../src/admission/plan-scopes.ts";
import { minuteScopes } from "../../src/domain/limits/limit-scope.ts";
import type { CountedRequest } from "../../src/domain/limits/limit-scope.ts";
import type { Limits } from "../../src/domain/limits/plan.ts";
import type { AdmittedUsage } from "../../src/store/usage-reports.ts";
import { CoordinationWorld, type WorkerWorld } from "../support/coordination-world.ts";
import { sizeOf } from "../support/requirement.ts";

const bounds = { reservationTtlMs: 24 * 3_600_000, scopeLimit: 1_000 };
/** Of a key that is always near its limit, and of one of which workers get leases. */
const plans = [
  { requestsPerMinute: 12, tokensPerMinute: 320 },
  { requestsPerMinute: 120, tokensPerMinute: 3_600 },
] as const;
/** Of a worker that makes most calls. */
const busy = 0;
const keys = ["a", "b"] as const;
const windowMs = 60_000;
/** Of a worker and those that replaced it while it still serves. */
const mostAtOnce = 3;

const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("wait" as const),
      ms: fc.constantFrom(1, 100, 300, 1_000, 7_000, 30_000, 59_000, 59_999, 60_001, 61_000),
    }),
  },
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant("call" as const),
      worker: fc.oneof(fc.constant(busy), fc.nat(3)),
      key: fc.constantFrom(...keys),
      tokens: fc.integer({ min: 0, max: 40 }),
      most: fc.integer({ min: 0, max: 60 }),
      count: fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 30 })),
      isCounted: fc.boolean(),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("rush" as const),
      worker: fc.nat(3),
      key: fc.constantFrom(...keys),
      tokens: fc.integer({ min: 0, max: 12 }),
      count: fc.integer({ min: 2, max: 6 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom("use" as const, "settle" as const, "settle" as const),
      call: fc.nat(40),
      tokens: fc.integer({ min: 0, max: 60 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("uncount" as const), call: fc.nat(40) }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("deliver" as const) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("settled" as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("end-control" as const),
      writes: fc.constantFrom(0, 0, 1, 2, 3, 5),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("start-control" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("end-worker" as const), worker: fc.nat(3) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("start-worker" as const), worker: fc.nat(3) }),
  },
);

const history = fc.record({
  workers: fc.integer({ min: 1, max: 4 }),
  limits: fc.constantFrom(...plans),
  skewMs: fc.constantFrom(0, 7, 333, 100_000),
  steps: fc.array(step, { minLength: 5, maxLength: 60 }),
});

type Settings = typeof history extends fc.Arbitrary<infer Value> ? Value : never;
type CallStep = Extract<Step, { kind: "call" }>;
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

/** One admitted request. It was decided about between the two times, as messages take time. */
interface Admitted {
  readonly worker: WorkerWorld;
  readonly callId: string;
  readonly key: string;
  readonly askedAtMs: number;
  readonly heardAtMs: number;
  readonly reserved: number;
  tokens: number;
  requests: number;
  counted: CountedRequest | undefined;
  isSettled: boolean;
}

class History {
  readonly #world: CoordinationWorld;
  readonly #workers: number;
  readonly #limits: Limits;
  readonly admitted: Admitted[] = [];
  readonly #undecided = new Map<string, WorkerWorld>();
  #calls = 0;
  /** Decisions that a worker made at once. */
  leased = 0;

  constructor({ workers, skewMs, limits }: Pick<Settings, "workers" | "skewMs" | "limits">) {
    this.#workers = workers;
    this.#limits = limits;
    const ledger = (since: number) => this.#ledger(since);
    this.#world = new CoordinationWorld({ workers, skewMs, bounds, ledger });
  }

  start(): Promise<void> {
    return this.#world.start();
  }

  async run(step: Step): Promise<void> {
    switch (step.kind) {
      case "wait":
        await this.#wait(step.ms);
        return;
      case "call":
        for (let count = 0; count < step.count; count += 1) this.#call(step);
        return;
      case "rush":
        await this.#rush(step);
        return;
      case "use":
      case "settle":
        this.#note(step);
        return;
      case "uncount":
        this.#uncount(this.admitted[step.call]);
        return;
      case "deliver":
        await this.#world.step();
        return;
      case "settled":
        await this.#world.settle();
        return;
      case "end-control":
        if (step.writes === 0) this.#world.end(this.#world.control);
        else if (this.#world.control !== undefined) {
          this.#world.control.writesLeft = step.writes;
        }
        return;
      case "start-control":
        if (this.#world.control?.isAlive !== true) await this.#startControl();
        return;
      case "end-worker":
        this.#world.end(this.#workerAt(step.worker));
        return;
      case "start-worker":
        this.#startWorker(1 + (step.worker % this.#workers));
        return;
    }
  }

  /** Everything runs, and has said all. */
  async finish(): Promise<void> {
    await this.#world.settle();
    if (this.#world.control?.isAlive === true) {
      this.#world.control.writesLeft = Number.POSITIVE_INFINITY;
    } else await this.#startControl();
    for (let number = 1; number <= this.#workers; number += 1) this.#startWorker(number);
    await this.#world.settle();
  }

  /** Calls of living workers that wait for a decision. */
  get undecided(): number {
    return [...this.#undecided.values()].filter(({ isAlive }) => isAlive).length;
  }

  /** The most of a unit that was admitted for a key in any minute. */
  most(key: string, unit: "requests" | "tokens"): number {
    const ofKey = this.admitted.filter((one) => one.key === key);
    const sums = ofKey.map(({ askedAtMs: from }) =>
      ofKey
        .filter((other) => other.askedAtMs >= from && other.heardAtMs <= from + windowMs)
        .reduce((sum, other) => sum + other[unit], 0),
    );
    return Math.max(0, ...sums);
  }

  /** What control would still grant a key, and what it may at most. */
  async left(key: string): Promise<{ readonly granted: number; readonly allowed: number }> {
    const now = this.#world.clock.monotonic();
    const isRecent = ({ askedAtMs }: Admitted): boolean => askedAtMs >= now - windowMs;
    const recent = this.admitted.filter((one) => one.key === key && isRecent(one));
    const used = recent.reduce((sum, { requests }) => sum + requests, 0);
    let granted = 0;
    const { requestsPerMinute } = this.#limits;
    const scopes = minuteScopes(keyScopeId(key), this.#limits);
    for (let asked = 0; asked < requestsPerMinute; asked += 1) {
      const counting = this.#world.living()[0]?.limits.count(scopes);
      await this.#world.settle();
      if ((await counting)?.isAdmitted === true) granted += 1;
    }
    return { granted, allowed: requestsPerMinute - used };
  }

  async #wait(ms: number): Promise<void> {
    // Messages do not take seconds.
    if (ms >= 1_000) await this.#world.settle();
    this.#world.advance(ms);
  }

  /** Calls after each other, for which the worker gets a lease. */
  async #rush({ count, ...call }: Extract<Step, { kind: "rush" }>): Promise<void> {
    for (let each = 0; each < count; each += 1) {
      this.#call({ ...call, most: call.tokens, isCounted: false });
      await this.#world.settle();
    }
  }

  #call({ worker, key, tokens, most, isCounted }: Omit<CallStep, "kind" | "count">): void {
    const at = this.#workerAt(worker);
    if (at === undefined) return;
    this.#calls += 1;
    const callId = `call ${this.#calls}`;
    const scopes = minuteScopes(keyScopeId(key), this.#limits, { overrunFactor: 2 });
    const askedAtMs = this.#world.clock.monotonic();
    const record = (use: { reserved: number; counted?: CountedRequest }): void => {
      if (!at.isAlive) return;
      this.admitted.push({
        worker: at,
        callId,
        key,
        askedAtMs,
        heardAtMs: this.#world.clock.monotonic(),
        counted: undefined,
        isSettled: false,
        requests: 1,
        tokens: use.reserved,
        ...use,
      });
    };
    this.#undecided.set(callId, at);
    if (isCounted) {
      const counting = at.limits.count(scopes);
      if (!(counting instanceof Promise)) this.leased += 1;
      void Promise.resolve(counting).then((decision) => {
        this.#undecided.delete(callId);
        if (decision.isAdmitted) record({ reserved: 0, counted: decision.counted });
      });
      return;
    }
    const mostTokens = Math.max(tokens, most);
    const acquiring = at.limits.acquire({ callId, scopes, tokens, mostTokens });
    if (!(acquiring instanceof Promise)) this.leased += 1;
    void Promise.resolve(acquiring).then(({ isAdmitted }) => {
      this.#undecided.delete(callId);
      if (isAdmitted) record({ reserved: tokens });
    });
  }

  #note({ kind, call, tokens }: Extract<Step, { kind: "use" | "settle" }>): void {
    const admitted = this.admitted[call];
    if (admitted === undefined || admitted.isSettled || !admitted.worker.isAlive) return;
    const { worker, callId, reserved } = admitted;
    if (kind === "use") return void worker.limits.use(callId, tokens);
    void worker.limits.settle(callId, tokens);
    admitted.isSettled = true;
    // What is used beyond the reservation is a debt.
    admitted.tokens = Math.min(tokens, reserved);
  }

  #uncount(admitted: Admitted | undefined): void {
    if (admitted?.counted === undefined || !admitted.worker.isAlive) return;
    void admitted.worker.limits.uncount(admitted.counted);
    admitted.counted = undefined;
    admitted.requests = 0;
  }

  #startControl(): Promise<void> {
    return this.#world.startControl();
  }

  #startWorker(number: number): void {
    const { length } = this.#world.living().filter((worker) => worker.number === number);
    // A worker serves until its successor does.
    if (length < (this.#workers === 1 ? mostAtOnce : 1)) this.#world.startWorker(number);
  }

  #workerAt(index: number): WorkerWorld | undefined {
    const living = this.#world.living();
    return living[index % Math.max(1, living.length)];
  }

  #ledger(since: number): readonly AdmittedUsage[] {
    const { clock } = this.#world;
    return this.admitted.flatMap(({ key, heardAtMs, requests, tokens }) => {
      const at = clock.now() - (clock.monotonic() - heardAtMs);
      if (at < since) return [];
      const second = Math.floor(at / 1_000) * 1_000;
      return [
        { limitScope: key, accountId: key, isGuarantee: false, at: second, requests, tokens },
      ];
    });
  }
}

test("no window of several workers exceeds its limit, and none loses what was admitted, whatever ends when", async () => {
  let leased = 0;
  await fc.assert(
    fc.asyncProperty(history, async ({ steps, limits, ...settings }) => {
      const run = new History({ limits, ...settings });
      await run.start();
      for (const step of steps) await run.run(step);
      await run.finish();
      expect(run.undecided).toBe(0);
      for (const key of keys) {
        expect(run.most(key, "requests")).toBeLessThanOrEqual(limits.requestsPerMinute);
        expect(run.most(key, "tokens")).toBeLessThanOrEqual(limits.tokensPerMinute);
        const { granted, allowed } = await run.left(key);
        expect(granted).toBeLessThanOrEqual(allowed);
      }
      leased += run.leased;
    }),
    { numRuns: sizeOf({ quick: 100, all: 2_000, measured: 10_000 }) },
  );
  expect(leased).toBeGreaterThan(0);
}, 900_000);
