import { expect, test } from "bun:test";
import fc from "fast-check";
import type { LimitScope } from "../../src/domain/limits/limit-scope.ts";
import { nextTurn } from "../../src/domain/waiting/wait.ts";
import type { ValkeyConnection } from "../../src/store/coordinator/valkey/connection/valkey-connection.ts";
import type { LimitDecision } from "../../src/store/store.ts";
import { copyKeys } from "../support/copy-keys.ts";
import { keysOfHistory } from "../support/history-keys.ts";
import { stepOf } from "../support/history-step.ts";
import { LimitsWorld, type LimitsWorker, type SentScript } from "../support/limits-world.ts";
import { sizeOf } from "../support/requirement.ts";
import { describeWithValkey, valkeyOfTests } from "../support/valkey-server.ts";

const plan = { requestsPerMinute: 24, tokensPerMinute: 600 };
const ceiling = { requestsPerMinute: 36, tokensPerMinute: 900 };
const windowMs = 60_000;
/** The database of the server's snapshot. */
const savedIn = 1;

const keys = keysOfHistory(plan, ceiling);

const worker = fc.nat(7);
const key = fc.nat(keys.length - 1);
const fates = ["unsent", "unanswered", "late"] as const;

const step = fc.oneof(
  stepOf(4, "wait", {
    ms: fc.constantFrom(1, 300, 1_000, 7_000, 30_000, 59_000, 59_999, 60_001, 61_000, 66_000),
  }),
  stepOf(10, "call", {
    worker,
    key,
    tokens: fc.integer({ min: 0, max: 60 }),
    count: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 40 })),
  }),
  stepOf(5, "settle", { call: fc.nat(60), tokens: fc.integer({ min: 0, max: 90 }) }),
  stepOf(6, "deliver", { worker, count: fc.integer({ min: 1, max: 6 }) }),
  stepOf(3, "lose", {
    worker,
    count: fc.integer({ min: 1, max: 6 }),
    fate: fc.constantFrom(...fates),
  }),
  stepOf(4, "finish", {}),
  stepOf(2, "cut", { worker }),
  stepOf(1, "cut-all", {}),
  stepOf(3, "heal", { worker }),
  stepOf(2, "heal-all", {}),
  stepOf(2, "obey-alone", { worker, key, tokens: fc.integer({ min: 0, max: 60 }) }),
  stepOf(1, "flush", {}),
  stepOf(2, "save", {}),
  stepOf(1, "go-back", {}),
  stepOf(1, "change-primary", { behindMs: fc.constantFrom(10, 999, 1_000, 5_000) }),
  stepOf(1, "crash", { worker, reached: fc.nat(5) }),
  stepOf(1, "join", {}),
  stepOf(2, "beat", {}),
  stepOf(1, "forget-scripts", {}),
);

type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;
type StepOf<Kind extends Step["kind"]> = Extract<Step, { readonly kind: Kind }>;

const history = fc.record({
  workers: fc.integer({ min: 1, max: 5 }),
  skewMs: fc.constantFrom(0, 7, 333, 100_000),
  isLeasing: fc.boolean(),
  steps: fc.array(step, { minLength: 10, maxLength: 70 }),
});

interface Admitted {
  readonly worker: LimitsWorker;
  readonly callId: string;
  readonly scopes: readonly LimitScope[];
  readonly atMs: number;
  readonly reserved: number;
  /** Set when the worker decided by itself: among how many it divided the limits. */
  readonly aloneAmong: number | undefined;
  tokens: number;
  isOpen: boolean;
}

class History {
  readonly #world: LimitsWorld;
  readonly #connection: ValkeyConnection;
  readonly #admitted: Admitted[] = [];
  readonly #undecided = new Map<string, LimitsWorker>();
  readonly #errors: unknown[] = [];
  /** When the server lost data. */
  readonly #flushedAt: number[] = [];
  #isSaved = false;
  /** Calls that the server has admitted. */
  readonly #decided = new Set<string>();
  #calls = 0;

  constructor(
    connection: ValkeyConnection,
    settings: { workers: number; skewMs: number; isLeasing: boolean },
  ) {
    this.#connection = connection;
    const onRun = ({ script, keys: [, record = ""] }: SentScript, reply: unknown): void => {
      if (script.name !== "acquire" || !Array.isArray(reply) || reply[0] !== 0) return;
      this.#decided.add(record.replace(/^.*:call:/, ""));
    };
    this.#world = new LimitsWorld({ connection, ...settings, onRun });
  }

  async run(step: Step): Promise<void> {
    const world = this.#world;
    switch (step.kind) {
      case "wait":
        return world.advance(step.ms);
      case "call":
        for (let count = 0; count < step.count; count += 1) this.#call(step);
        return;
      case "settle":
        return this.#settle(step);
      case "deliver":
        return this.#deliver(step, "answered");
      case "lose":
        return this.#deliver(step, step.fate);
      case "finish":
        return this.#finish();
      case "cut":
      case "heal":
        return this.#turn(world.at(step.worker), step.kind === "cut");
      case "cut-all":
      case "heal-all":
        for (const each of world.living) await this.#turn(each, step.kind === "cut-all");
        return;
      case "obey-alone":
        return this.#obeyAlone(step);
      case "flush":
        this.#flushedAt.push(world.clock.monotonic());
        await this.#connection.send("any", "FLUSHDB", []);
        return;
      case "save":
        this.#isSaved = true;
        await copyKeys(this.#connection, { from: 0, to: savedIn });
        return;
      case "go-back":
        return this.#goBack();
      case "change-primary":
        world.behindMs += step.behindMs;
        return;
      case "crash": {
        const crashed = world.at(step.worker);
        if (crashed !== undefined) await world.crash(crashed, step.reached);
        return;
      }
      case "join":
        return world.start();
      case "beat":
        world.beat();
        for (const { limits } of world.living) void limits.catchUp();
        return;
      case "forget-scripts":
        await this.#connection.send("any", "SCRIPT", ["FLUSH"]);
    }
  }

  /** The server crashes, and starts with what was saved last. */
  async #goBack(): Promise<void> {
    if (!this.#isSaved) return;
    this.#flushedAt.push(this.#world.clock.monotonic());
    await copyKeys(this.#connection, { from: savedIn, to: 0 });
    this.#world.restarted();
  }

  /** The server is there for all; no call waits for a decision. */
  async end(): Promise<void> {
    const world = this.#world;
    for (const each of world.living) await this.#turn(each, false);
    await this.#finish();
    const telling = world.living.map(({ limits }) => limits.end());
    await world.settle();
    await Promise.all(telling);
    if (this.#errors.length > 0) throw this.#errors[0];
    expect([...this.#undecided.values()].filter(({ isAlive }) => isAlive)).toEqual([]);
  }

  /** Everything arrives, also what waits for leases. */
  #finish(): Promise<void> {
    return this.#world.finish(this.#undecided);
  }

  /** How much more than a limit was admitted in any minute, in parts of what may be. */
  checkMinutes(scope: LimitScope): number {
    let worst = 0;
    const under = this.#under(scope);
    for (const { atMs: from } of under) {
      const within = under.filter(({ atMs }) => atMs >= from && atMs <= from + windowMs);
      const alone = new Map<LimitsWorker, number>();
      for (const { worker: by, aloneAmong } of within) {
        if (aloneAmong === undefined) continue;
        alone.set(by, Math.max(alone.get(by) ?? 0, shareOf(scope, aloneAmong)));
      }
      const flushes = this.#flushedAt.filter((at) => at >= from && at <= from + windowMs).length;
      const shares = [...alone.values()].reduce((sum, share) => sum + share, 0);
      const used = usedOf(within, scope);
      expect(used).toBeLessThanOrEqual((1 + flushes) * scope.limit + shares);
      worst = Math.max(worst, used / scope.limit);
    }
    return worst;
  }

  /** Once each worker has asked, the server holds all that was admitted in the last minute. */
  async checkHeld(scopes: readonly LimitScope[]): Promise<void> {
    const world = this.#world;
    const [requests, tokens] = scopes;
    if (requests === undefined || tokens === undefined) return;
    const tooLarge = { scopes, tokens: 10_000 };
    let last: LimitDecision | undefined;
    for (const [index, each] of world.living.entries()) {
      const before = last;
      const asked = each.limits.acquire({ callId: `too large ${index}`, ...tooLarge });
      void Promise.resolve(asked).then((decision) => (last = decision));
      for (let times = 0; times < 40 && last === before; times += 1) {
        await world.settle();
        world.advance(5);
      }
    }
    if (last?.isAdmitted !== false) return;
    const now = world.clock.monotonic();
    const recent = this.#under(requests).filter(({ atMs }) => atMs >= now - windowMs);
    const living = recent.filter((call) => call.worker.isAlive);
    for (const scope of [requests, tokens]) {
      const held = last.slots.reduce((sum, slot) => sum + slot[scope.unit], 0);
      expect(held + last.debt).toBeGreaterThanOrEqual(usedOf(living, scope));
    }
  }

  #under({ id }: LimitScope): readonly Admitted[] {
    return this.#admitted.filter(({ scopes }) => scopes.some((scope) => scope.id === id));
  }

  #call({ worker: index, key: number, tokens }: Omit<StepOf<"call">, "kind" | "count">): void {
    const asked = this.#world.at(index);
    const scopes = keys[number];
    if (asked === undefined || scopes === undefined) return;
    const callId = `call ${this.#calls}`;
    this.#undecided.set(callId, asked);
    this.#ask(asked, scopes, tokens).then(
      () => this.#undecided.delete(callId),
      (error: unknown) => this.#errors.push(error),
    );
  }

  async #ask(
    by: LimitsWorker,
    scopes: readonly LimitScope[],
    tokens: number,
  ): Promise<LimitDecision> {
    const callId = `call ${this.#calls}`;
    this.#calls += 1;
    const asked = by.limits.acquire({ callId, scopes, tokens });
    // Under a lease, which the server has charged already.
    const isLeased = !(asked instanceof Promise);
    const decision = await asked;
    if (!decision.isAdmitted) return decision;
    const isAlone = !isLeased && (!this.#decided.has(callId) || by.isCut);
    const aloneAmong = isAlone ? by.workers : undefined;
    const atMs = this.#world.clock.monotonic();
    const call = { worker: by, callId, scopes, atMs, reserved: tokens, tokens, isOpen: true };
    this.#admitted.push({ ...call, aloneAmong });
    if (isAlone) this.#checkShare(by, scopes);
    return decision;
  }

  /** Alone, a worker grants its share less what it has admitted before. */
  #checkShare(by: LimitsWorker, scopes: readonly LimitScope[]): void {
    const since = this.#world.clock.monotonic() - windowMs;
    for (const scope of scopes) {
      const own = this.#under(scope).filter((call) => call.worker === by && call.atMs >= since);
      expect(usedOf(own, scope)).toBeLessThanOrEqual(shareOf(scope, by.workers));
    }
  }

  #settle({ call, tokens }: StepOf<"settle">): void {
    const admitted = this.#admitted[call % Math.max(1, this.#admitted.length)];
    if (admitted === undefined || !admitted.isOpen || !admitted.worker.isAlive) return;
    admitted.worker.limits.settle(admitted.callId, tokens);
    admitted.isOpen = false;
    admitted.tokens = Math.min(tokens, admitted.reserved);
  }

  async #deliver(
    { worker: index, count }: Omit<StepOf<"deliver">, "kind">,
    fate: StepOf<"lose">["fate"] | "answered",
  ): Promise<void> {
    const by = this.#world.at(index);
    for (let each = 0; by !== undefined && each < count; each += 1) {
      await this.#world.deliver(by, fate);
    }
  }

  /** What the server had received before it was cut off runs then. */
  async #turn(by: LimitsWorker | undefined, isCut: boolean): Promise<void> {
    if (by === undefined || by.isCut === isCut) return;
    if (isCut) return this.#world.cut(by);
    by.isCut = false;
    await this.#world.runLate(by);
    this.#world.hear(by);
  }

  /** A worker that decides alone tells an honest wait as well. */
  async #obeyAlone({ worker: index, key: number, tokens }: StepOf<"obey-alone">): Promise<void> {
    const by = this.#world.at(index);
    const scopes = keys[number];
    if (by === undefined || scopes === undefined) return;
    await this.#turn(by, true);
    await this.#world.settle();
    const refused = await this.#ask(by, scopes, tokens);
    if (refused.isAdmitted || refused.retryAfterMs === undefined) return;
    this.#world.advance(refused.retryAfterMs);
    expect((await this.#ask(by, scopes, tokens)).isAdmitted).toBe(true);
  }
}

function usedOf(calls: readonly Admitted[], { unit }: LimitScope): number {
  if (unit === "requests") return calls.length;
  return calls.reduce((sum, { reserved, tokens }) => sum + Math.min(reserved, tokens), 0);
}

function shareOf({ limit }: LimitScope, workers: number): number {
  return Math.max(1, Math.floor(limit / workers));
}

describeWithValkey(() => {
  const valkey = valkeyOfTests();

  test("outages, lost answers and lost data admit no more than the shares of workers, and twice the limit", async () => {
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
        for (const scope of keys.flat()) worst = Math.max(worst, run.checkMinutes(scope));
        for (const scopes of keys) await run.checkHeld(scopes);
      }),
      {
        numRuns: sizeOf({ quick: 150, all: 2_000, measured: 10_000 }),
      },
    );
    expect(worst).toBeGreaterThan(1);
  }, 3_600_000);
});
