import { expect, test } from "bun:test";
import fc from "fast-check";
import type { CountedRequest, LimitScope } from "../../src/domain/limits/limit-scope.ts";
import { countedSlots, slotAt, slotMs } from "../../src/domain/limits/slots.ts";
import { nextTurn } from "../../src/domain/waiting/wait.ts";
import type { ValkeyConnection } from "../../src/store/coordinator/valkey/connection/valkey-connection.ts";
import type { LimitDecision } from "../../src/store/store.ts";
import { keysOfHistory } from "../support/history-keys.ts";
import { stepOf } from "../support/history-step.ts";
import { LimitsWorld, type LimitsWorker, type SentScript } from "../support/limits-world.ts";
import { sizeOf } from "../support/requirement.ts";
import { describeWithValkey, valkeyOfTests } from "../support/valkey-server.ts";

const plan = { requestsPerMinute: 120, tokensPerMinute: 3_000 };
const ceiling = { requestsPerMinute: 180, tokensPerMinute: 4_000 };
const windowMs = 60_000;

const keys = keysOfHistory(plan, ceiling);

const worker = fc.nat(5);
const key = fc.nat(keys.length - 1);
const tokens = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 400 }));

const step = fc.oneof(
  stepOf(5, "wait", {
    ms: fc.constantFrom(0.3, 0.8, 1, 5, 100, 300, 700, 999, 1_000, 7_000, 59_000, 61_000),
  }),
  stepOf(8, "call", {
    worker,
    key,
    tokens,
    count: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 60 })),
    isCounted: fc.boolean(),
  }),
  // One caller after the other, as a busy key has them: most are admitted under a lease.
  stepOf(8, "calls in turn", {
    worker,
    key,
    tokens,
    count: fc.integer({ min: 2, max: 30 }),
    isCounted: fc.boolean(),
  }),
  stepOf(5, "settle", { call: fc.nat(200), part: fc.double({ min: 0, max: 1, noNaN: true }) }),
  stepOf(2, "use", { call: fc.nat(200), part: fc.double({ min: 0, max: 1, noNaN: true }) }),
  stepOf(3, "uncount", { call: fc.nat(200) }),
  stepOf(6, "deliver", { worker, count: fc.integer({ min: 1, max: 6 }) }),
  stepOf(4, "finish", {}),
  stepOf(4, "ask", { worker, key, tokens }),
  stepOf(4, "ask for the rest", { worker, key }),
  stepOf(1, "crash", { worker, reached: fc.nat(5) }),
  stepOf(1, "join", {}),
);

type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;
type StepOf<Kind extends Step["kind"]> = Extract<Step, { readonly kind: Kind }>;

const history = fc.record({
  workers: fc.integer({ min: 1, max: 4 }),
  skewMs: fc.constantFrom(0, 7, 333, 100_000),
  steps: fc.array(step, { minLength: 5, maxLength: 60 }),
});

interface Admitted {
  readonly worker: LimitsWorker;
  readonly callId: string;
  readonly scopes: readonly LimitScope[];
  /** In the server's time. */
  readonly atMs: number;
  readonly reserved: number;
  requests: number;
  tokens: number;
  counted: CountedRequest | undefined;
  isOpen: boolean;
}

/** Leases of busy keys: nothing is refused because of them, and they are used up to the limit only. */
class History {
  readonly #world: LimitsWorld;
  readonly #admitted: Admitted[] = [];
  readonly #errors: unknown[] = [];
  readonly #undecided = new Map<string, LimitsWorker>();
  /** When the server ran the script that counted or admitted. */
  #ranAt = 0;
  #crashedAt = Number.NEGATIVE_INFINITY;
  #calls = 0;
  leased = 0;
  recalls = 0;

  constructor(connection: ValkeyConnection, settings: { workers: number; skewMs: number }) {
    const onRun = (_sent: SentScript, reply: unknown): void => {
      this.#ranAt = this.#world.now;
      if (Array.isArray(reply) && reply[0] === 3) this.recalls += 1;
    };
    this.#world = new LimitsWorld({ connection, ...settings, onRun, isLeasing: true });
  }

  async run(step: Step): Promise<void> {
    const world = this.#world;
    switch (step.kind) {
      case "wait":
        return world.advance(step.ms);
      case "call":
        for (let count = 0; count < step.count; count += 1) void this.#ask(step);
        return;
      case "calls in turn":
        for (let count = 0; count < step.count; count += 1) await this.#decided(this.#ask(step));
        return;
      case "settle":
        return this.#settle(this.#admitted[step.call % this.#admitted.length], step.part);
      case "use":
        return this.#use(this.#admitted[step.call % this.#admitted.length], step.part);
      case "uncount":
        return this.#uncount(step.call);
      case "deliver":
        return this.#deliver(step);
      case "finish":
        return this.#finish();
      case "ask":
        return this.#check(step);
      case "ask for the rest":
        return this.#askForRest(step);
      case "crash": {
        const crashed = world.at(step.worker);
        if (crashed === undefined) return;
        this.#crashedAt = world.now;
        return world.crash(crashed, step.reached);
      }
      case "join":
        return world.start();
    }
  }

  async end(): Promise<void> {
    await this.#finish();
    for (const call of this.#admitted) this.#settle(call, 1);
    this.#world.advance(1_500);
    await this.#finish();
    if (this.#errors.length > 0) throw this.#errors[0];
    expect([...this.#undecided.values()].filter(({ isAlive }) => isAlive)).toEqual([]);
  }

  /** With all leases ended, the windows hold what was admitted. */
  async checkSums(): Promise<void> {
    const [first] = this.#world.living;
    if (first === undefined || this.#isTainted) return;
    for (const [requests, tokens] of keys.flatMap((scopes) => [
      scopes.slice(0, 2),
      scopes.slice(-2),
    ])) {
      if (requests === undefined || tokens === undefined) throw new Error("a scope is missing");
      const tooLarge = { callId: "too large", scopes: [requests, tokens], tokens: 5_000 };
      const { state } = await this.#decided(Promise.resolve(first.limits.acquire(tooLarge)));
      expect([state.remainingRequests, state.remainingTokens]).toEqual([
        requests.limit - this.#charged(requests),
        tokens.limit - this.#charged(tokens),
      ]);
    }
  }

  /** The most that was admitted under a scope in any minute. */
  most({ id, unit }: LimitScope): number {
    const under = this.#admitted.filter(({ scopes }) => scopes.some((scope) => scope.id === id));
    const sums = under.map(({ atMs: from }) =>
      under
        .filter(({ atMs }) => atMs >= from && atMs <= from + windowMs)
        .reduce((sum, call) => sum + call[unit], 0),
    );
    return Math.max(0, ...sums);
  }

  /** What a worker that has crashed had leased stays charged for a minute. */
  get #isTainted(): boolean {
    return this.#world.now <= this.#crashedAt + (countedSlots + 1) * slotMs;
  }

  #charged({ id, unit }: LimitScope): number {
    const oldest = slotAt(this.#world.now) - countedSlots;
    return this.#admitted
      .filter(({ scopes }) => scopes.some((scope) => scope.id === id))
      .filter(({ atMs }) => slotAt(atMs) > oldest)
      .reduce((sum, call) => sum + call[unit], 0);
  }

  async #ask(
    asked: Pick<StepOf<"ask">, "worker" | "key" | "tokens"> & { readonly isCounted?: boolean },
  ): Promise<LimitDecision | undefined> {
    const by = this.#world.at(asked.worker);
    const scopes = keys[asked.key];
    if (by === undefined || scopes === undefined) return undefined;
    const callId = `call ${(this.#calls += 1)}`;
    this.#undecided.set(callId, by);
    try {
      const decision = await this.#admit(by, { ...asked, callId, scopes });
      this.#undecided.delete(callId);
      return decision;
    } catch (error) {
      this.#errors.push(error);
      return undefined;
    }
  }

  async #admit(
    by: LimitsWorker,
    { callId, scopes, tokens: reserved, isCounted = false }: AskedCall,
  ): Promise<LimitDecision> {
    let counted: CountedRequest | undefined;
    if (isCounted) {
      const decided = by.limits.count(scopes);
      const decision = await decided;
      if (!decision.isAdmitted) return decision;
      ({ counted } = decision);
      const atMs = this.#decidedAt(decided);
      // A lease ends with its slot in the server's time.
      expect(counted.slot).toBe(slotAt(atMs));
      const none = { reserved: 0, tokens: 0, isOpen: false };
      this.#admitted.push({ worker: by, callId, scopes, atMs, requests: 1, counted, ...none });
    }
    const decided = by.limits.acquire({ callId, scopes, tokens: reserved, counted });
    const decision = await decided;
    if (!decision.isAdmitted) return decision;
    const requests = isCounted ? 0 : 1;
    const atMs = this.#decidedAt(decided);
    const call = { worker: by, callId, scopes, atMs, reserved, requests, tokens: reserved };
    this.#admitted.push({ ...call, counted: undefined, isOpen: true });
    return decision;
  }

  /** A decision of the server stands when its script runs; one under a lease at once. */
  #decidedAt(decided: unknown): number {
    if (decided instanceof Promise) return this.#ranAt;
    this.leased += 1;
    return this.#world.now;
  }

  #settle(call: Admitted | undefined, part: number): void {
    if (call === undefined || !call.isOpen || !call.worker.isAlive) return;
    call.isOpen = false;
    const used = Math.max(Math.floor(part * call.reserved), 0);
    call.worker.limits.settle(call.callId, used);
    call.worker.limits.settle(call.callId, used + 1);
    call.tokens = used;
  }

  #use(call: Admitted | undefined, part: number): void {
    if (call === undefined || !call.isOpen || !call.worker.isAlive) return;
    call.worker.limits.use(call.callId, Math.floor(part * call.reserved));
  }

  #uncount(index: number): void {
    const counted = this.#admitted.filter((each) => each.counted !== undefined);
    const call = counted[index % counted.length];
    if (call?.counted === undefined || !call.worker.isAlive) return;
    call.worker.limits.uncount(call.counted);
    call.counted = undefined;
    call.requests = 0;
  }

  async #deliver({ worker: index, count }: StepOf<"deliver">): Promise<void> {
    const by = this.#world.at(index);
    for (let each = 0; by !== undefined && each < count; each += 1) await this.#world.deliver(by);
  }

  /** Everything arrives, also what waits for leases. */
  #finish(): Promise<void> {
    return this.#world.finish(this.#undecided);
  }

  async #decided<Decision>(asked: Promise<Decision>): Promise<Decision> {
    await this.#finish();
    return asked;
  }

  /** A refusal has a reason other than leases. */
  async #check(asked: StepOf<"ask">): Promise<void> {
    await this.#finish();
    const scopes = keys[asked.key] ?? [];
    const decision = await this.#decided(this.#ask(asked));
    if (decision?.isAdmitted !== false || this.#isTainted) return;
    const demand = { requests: 1, tokens: asked.tokens };
    const isOver = scopes.some((scope) => this.#charged(scope) + demand[scope.unit] > scope.limit);
    expect(isOver).toBe(true);
  }

  async #askForRest({ worker: index, key: number }: StepOf<"ask for the rest">): Promise<void> {
    await this.#finish();
    const scopes = keys[number] ?? [];
    const restOf = (scope: LimitScope): number => scope.limit - this.#charged(scope);
    const [ofRequests, ofTokens] = [
      scopes.filter(({ unit }) => unit === "requests").map(restOf),
      scopes.filter(({ unit }) => unit === "tokens").map(restOf),
    ];
    if (this.#isTainted || Math.min(...ofRequests) < 1) return;
    const asked = this.#ask({ worker: index, key: number, tokens: Math.min(...ofTokens) });
    const decision = await this.#decided(asked);
    if (decision !== undefined) expect(decision.isAdmitted).toBe(true);
  }
}

interface AskedCall {
  readonly callId: string;
  readonly scopes: readonly LimitScope[];
  readonly tokens: number;
  readonly isCounted?: boolean;
}

describeWithValkey(() => {
  const valkey = valkeyOfTests();

  test("leases of several workers exceed no limit, and no call is refused because of them", async () => {
    let worst = 0;
    let leased = 0;
    let recalls = 0;
    await fc.assert(
      fc.asyncProperty(history, async ({ steps, ...settings }) => {
        await valkey.connection.send("any", "FLUSHALL", []);
        const run = new History(valkey.connection, settings);
        for (const each of steps) {
          await run.run(each);
          await nextTurn();
        }
        await run.end();
        for (const scope of keys.flat()) worst = Math.max(worst, run.most(scope) / scope.limit);
        expect(worst).toBeLessThanOrEqual(1);
        await run.checkSums();
        leased += run.leased;
        recalls += run.recalls;
      }),
      { numRuns: sizeOf({ quick: 150, all: 2_000, measured: 10_000 }), endOnFailure: true },
    );
    expect(worst).toBeGreaterThan(0.95);
    expect(leased).toBeGreaterThan(0);
    expect(recalls).toBeGreaterThan(0);
  }, 3_600_000);
});
