import { expect, test } from "bun:test";
import fc from "fast-check";
import type { CountedRequest, LimitScope } from "../../src/domain/limits/limit-scope.ts";
import { nextTurn } from "../../src/domain/waiting/wait.ts";
import { windowsOf } from "../../src/store/coordinator/valkey/limits/scope-parameters.ts";
import type { LimitDecision, LimitRequest } from "../../src/store/store.ts";
import { LimitModel } from "../support/limit-model.ts";
import { keysOfHistory } from "../support/history-keys.ts";
import { stepOf } from "../support/history-step.ts";
import {
  LimitsWorld,
  reservationTtlMs,
  type LimitsWorker,
  type SentScript,
} from "../support/limits-world.ts";
import { sizeOf } from "../support/requirement.ts";
import type { ValkeyConnection } from "../../src/store/coordinator/valkey/connection/valkey-connection.ts";
import { describeWithValkey, valkeyOfTests } from "../support/valkey-server.ts";

const plan = { requestsPerMinute: 12, tokensPerMinute: 320 };
const ceiling = { requestsPerMinute: 18, tokensPerMinute: 480 };
const windowMs = 60_000;
/** See `window-script.ts`. */
const overrunSlots = 120;

const keys = keysOfHistory(plan, ceiling, { overrunFactor: 2 });

const waits = [1, 300, 999, 1_000, 7_000, 30_000, 59_000, 59_999, 60_000, 60_001, 61_000, 66_000];
const at = { worker: fc.nat(7), key: fc.nat(keys.length - 1) };

const step = fc.oneof(
  stepOf(4, "wait", { ms: fc.constantFrom(...waits) }),
  stepOf(1, "wait", { ms: fc.constantFrom(130_000, 599_000, 600_000, 661_000) }),
  stepOf(10, "call", {
    ...at,
    tokens: fc.integer({ min: 0, max: 60 }),
    overrun: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 300 })),
    count: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 25 })),
    isCounted: fc.boolean(),
  }),
  stepOf(2, "use", { call: fc.nat(60), tokens: fc.integer({ min: 0, max: 300 }) }),
  stepOf(6, "settle", { call: fc.nat(60), tokens: fc.integer({ min: 0, max: 300 }) }),
  stepOf(1, "uncount", { call: fc.nat(60) }),
  stepOf(8, "deliver", { worker: fc.nat(7), count: fc.integer({ min: 1, max: 6 }) }),
  stepOf(2, "lose", {
    worker: fc.nat(7),
    fate: fc.constantFrom("unsent" as const, "unanswered" as const, "late" as const),
  }),
  stepOf(4, "finish", {}),
  stepOf(2, "obey", { ...at, tokens: fc.integer({ min: 0, max: 320 }) }),
  stepOf(1, "crash", { worker: fc.nat(7), reached: fc.nat(5) }),
  stepOf(1, "join", {}),
  stepOf(2, "beat", {}),
  stepOf(1, "forget-scripts", {}),
);

type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;
type StepOf<Kind extends Step["kind"]> = Extract<Step, { readonly kind: Kind }>;

const history = fc.record({
  workers: fc.integer({ min: 1, max: 6 }),
  skewMs: fc.constantFrom(0, 7, 333, 100_000),
  steps: fc.array(step, { minLength: 5, maxLength: 70 }),
});

type Terms = Pick<StepOf<"call">, "tokens" | "overrun" | "isCounted">;

interface Call {
  readonly worker: LimitsWorker;
  readonly callId: string;
  readonly scopes: readonly LimitScope[];
}

interface Admitted extends Call {
  readonly atMs: number;
  readonly reserved: number;
  requests: number;
  tokens: number;
  counted?: CountedRequest | undefined;
  isOpen: boolean;
}

/** Scripts whose answers decide nothing, so that losing one changes nothing. */
const corrections = ["use", "settle", "uncount"];

/** A history, and the model that sees the scripts in the order in which the server runs them. */
class History {
  readonly #world: LimitsWorld;
  readonly #connection: ValkeyConnection;
  readonly #model = new LimitModel(reservationTtlMs, overrunSlots);
  readonly #scopesOf = new Map(keys.map((scopes) => [windowsOf(scopes).keys.join(), scopes]));
  readonly #requests = new Map<string, LimitRequest>();
  readonly admitted: Admitted[] = [];
  readonly #undecided = new Map<string, LimitsWorker>();
  #verdict: unknown;
  readonly #errors: unknown[] = [];
  #calls = 0;

  constructor(connection: ValkeyConnection, settings: { workers: number; skewMs: number }) {
    this.#connection = connection;
    const onRun = (sent: SentScript, reply: unknown): void => this.#follow(sent, reply);
    this.#world = new LimitsWorld({ connection, ...settings, onRun });
  }

  async run(step: Step): Promise<void> {
    switch (step.kind) {
      case "wait":
        return this.#world.clock.advance(step.ms);
      case "call":
        for (let count = 0; count < step.count; count += 1) this.#call(step);
        return;
      case "use":
      case "settle":
        return this.#correct(step);
      case "uncount":
        return this.#uncount(this.admitted[step.call]);
      case "deliver":
        return this.#deliver(step);
      case "lose":
        return this.#lose(step);
      case "finish":
        return this.#world.settle();
      case "obey":
        return this.#obey(step);
      case "crash":
        return this.#crash(step);
      case "join":
        return this.#world.start();
      case "beat":
        for (const { limits } of this.#world.living) void limits.catchUp();
        return;
      case "forget-scripts":
        await this.#connection.send("any", "SCRIPT", ["FLUSH"]);
    }
  }

  /** Everything is told; no call waits for a decision. */
  async end(): Promise<void> {
    if (this.#world.living.length === 0) this.#world.start();
    await this.#world.settle();
    await this.#catchUp();
    if (this.#errors.length > 0) throw this.#errors[0];
    const undecided = [...this.#undecided.values()].filter(({ isAlive }) => isAlive);
    expect(undecided).toEqual([]);
  }

  /** The windows hold exactly what was admitted, as all of it is settled. */
  async checkSums(): Promise<void> {
    const [worker] = this.#world.living;
    for (const call of this.admitted.filter(({ isOpen }) => isOpen)) {
      if (call.worker.isAlive) this.#settle(call, call.reserved);
    }
    await this.#world.settle();
    await this.#catchUp();
    for (const scopes of keys) {
      const [requests, tokens] = scopes;
      if (worker === undefined || requests === undefined || tokens === undefined) continue;
      const tooLarge = { callId: "too large", scopes: [requests, tokens], tokens: 1_000 };
      const asked = worker.limits.acquire(tooLarge);
      await this.#world.settle();
      const { state } = await asked;
      expect(state).toEqual(this.#model.peek(scopes, this.#world.now));
    }
  }

  /** The most of a unit that was admitted under a scope in any minute. */
  most({ id, unit }: LimitScope): number {
    const under = this.admitted.filter(({ scopes }) => scopes.some((scope) => scope.id === id));
    const sums = under.map(({ atMs: from }) =>
      under
        .filter(({ atMs }) => atMs >= from && atMs <= from + windowMs)
        // What was used beyond a reservation is charged when it becomes free.
        .reduce((sum, { reserved, ...used }) => {
          return sum + (unit === "tokens" ? Math.min(used.tokens, reserved) : used.requests);
        }, 0),
    );
    return Math.max(0, ...sums);
  }

  async #catchUp(): Promise<void> {
    const telling = this.#world.living.map(({ limits }) => limits.catchUp());
    await this.#world.settle();
    await Promise.all(telling);
  }

  #follow({ script, keys, parameters }: SentScript, reply: unknown): void {
    const { now } = this.#world;
    const callId = keys.find((key) => key.includes(":call:"))?.replace(/^.*:call:/, "") ?? "";
    const scopes = this.#scopesOf.get(keys.filter((key) => /:[rt]$/.test(key)).join());
    const [, , amount = ""] = parameters;
    const verdict = Array.isArray(reply) ? reply[0] : undefined;
    switch (script.name) {
      case "acquire": {
        const request = this.#requests.get(callId);
        if (verdict === 2 || request === undefined) return;
        this.#verdict = this.#model.acquire(request, now);
        return;
      }
      case "count": {
        if (verdict === 2 || scopes === undefined) return;
        this.#verdict = this.#model.count(scopes, now);
        return;
      }
      case "uncount":
        return this.#model.uncount(scopes ?? [], Number(amount), now);
      case "use":
        return this.#model.use(callId, Number(amount), now);
      case "settle":
        return this.#model.settle(callId, Number(amount), now);
    }
  }

  #call({ worker: index, key, ...terms }: Omit<StepOf<"call">, "kind" | "count">): void {
    const worker = this.#world.at(index);
    const scopes = keys[key];
    if (worker === undefined || scopes === undefined) return;
    this.#calls += 1;
    const call = { worker, callId: `call ${this.#calls}`, scopes };
    this.#undecided.set(call.callId, worker);
    void this.#ask(call, terms).then(
      () => this.#undecided.delete(call.callId),
      (error: unknown) => this.#errors.push(error),
    );
  }

  /** As a gateway does: it may count the request before it knows the tokens. */
  async #ask(call: Call, { tokens, overrun, isCounted }: Terms): Promise<LimitDecision> {
    const { limits } = call.worker;
    let counted: CountedRequest | undefined;
    if (isCounted) {
      const decision = await limits.count(call.scopes);
      const refusal: unknown = decision.isAdmitted ? undefined : decision;
      expect(refusal).toEqual(this.#takeVerdict());
      if (!decision.isAdmitted) return decision;
      ({ counted } = decision);
      this.#admit(call, { requests: 1, tokens: 0, counted });
    }
    const { callId, scopes } = call;
    const request = { callId, scopes, tokens, mostTokens: tokens + overrun, counted };
    this.#requests.set(callId, request);
    const decision = await limits.acquire(request);
    expect<unknown>(decision).toEqual(this.#takeVerdict());
    if (decision.isAdmitted) this.#admit(call, { requests: isCounted ? 0 : 1, tokens });
    return decision;
  }

  #admit(call: Call, use: Pick<Admitted, "requests" | "tokens" | "counted">): void {
    const { tokens: reserved, counted } = use;
    const atMs = this.#world.now;
    this.admitted.push({ ...call, atMs, reserved, ...use, isOpen: counted === undefined });
  }

  /** What the model decided about the script that was answered last. */
  #takeVerdict(): unknown {
    const verdict = this.#verdict;
    this.#verdict = "nothing was decided";
    return verdict;
  }

  #correct({ kind, call, tokens }: StepOf<"use" | "settle">): void {
    const admitted = this.admitted[call % Math.max(1, this.admitted.length)];
    if (admitted === undefined || !admitted.isOpen || !admitted.worker.isAlive) return;
    if (kind === "use") admitted.worker.limits.use(admitted.callId, tokens);
    else this.#settle(admitted, tokens);
  }

  #settle(admitted: Admitted, tokens: number): void {
    admitted.worker.limits.settle(admitted.callId, tokens);
    // Again, which must change nothing.
    admitted.worker.limits.settle(admitted.callId, tokens + 1);
    admitted.isOpen = false;
    admitted.tokens = tokens;
  }

  #uncount(admitted: Admitted | undefined): void {
    if (admitted?.counted === undefined || !admitted.worker.isAlive) return;
    admitted.worker.limits.uncount(admitted.counted);
    admitted.counted = undefined;
    admitted.requests = 0;
  }

  async #deliver({ worker: index, count }: StepOf<"deliver">): Promise<void> {
    const worker = this.#world.at(index);
    for (let each = 0; worker !== undefined && each < count; each += 1) {
      await this.#world.deliver(worker);
    }
  }

  async #lose({ worker: index, fate }: StepOf<"lose">): Promise<void> {
    const worker = this.#world.at(index);
    const [message] = worker?.messages ?? [];
    if (worker === undefined || message === undefined) return;
    const isCorrection = corrections.includes(message.script.name);
    // Otherwise the worker decides alone about what waits for the correction.
    const isAwaited = [...this.#undecided.values()].includes(worker);
    await this.#world.deliver(worker, isCorrection && !isAwaited ? fate : "answered");
  }

  /** A caller that waits as long as it was told is admitted, if nothing else happens. */
  async #obey({ key, worker: index, tokens }: StepOf<"obey">): Promise<void> {
    await this.#world.settle();
    await this.#catchUp();
    const refused = await this.#askNow(key, index, tokens);
    if (refused?.isAdmitted !== false || refused.retryAfterMs === undefined) return;
    // An hour may not pay a larger debt.
    if (refused.retryAfterMs >= 3_599_000) return;
    expect(refused.retryAfterMs).toBeGreaterThan(0);
    this.#world.clock.advance(refused.retryAfterMs);
    const decision = await this.#askNow(key, index + 1, tokens);
    expect(decision?.isAdmitted).toBe(true);
  }

  async #askNow(key: number, index: number, tokens: number): Promise<LimitDecision | undefined> {
    const worker = this.#world.at(index);
    const scopes = keys[key];
    if (worker === undefined || scopes === undefined) return undefined;
    this.#calls += 1;
    const call = { worker, callId: `call ${this.#calls}`, scopes };
    const asked = this.#ask(call, { tokens, overrun: 0, isCounted: false });
    await this.#world.settle();
    return asked;
  }

  async #crash({ worker: index, reached }: StepOf<"crash">): Promise<void> {
    const worker = this.#world.at(index);
    if (worker !== undefined) await this.#world.crash(worker, reached);
  }
}

describeWithValkey(() => {
  const valkey = valkeyOfTests();

  test("workers of several gateways count like one plain model, and no minute exceeds a limit", async () => {
    let worst = 0;
    await fc.assert(
      fc.asyncProperty(history, async ({ steps, ...settings }) => {
        await valkey.connection.send("any", "FLUSHALL", []);
        const run = new History(valkey.connection, settings);
        for (const each of steps) {
          await run.run(each);
          // What it has answered is noted at that time.
          await nextTurn();
        }
        await run.end();
        for (const scope of keys.flat()) worst = Math.max(worst, run.most(scope) / scope.limit);
        expect(worst).toBeLessThanOrEqual(1);
        await run.checkSums();
      }),
      {
        numRuns: sizeOf({ quick: 150, all: 2_000, measured: 10_000 }),
        endOnFailure: false,
      },
    );
    expect(worst).toBe(1);
  }, 3_600_000);
});
