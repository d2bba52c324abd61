import { MemoryLimitStore } from "../../src/store/limits/memory/limit-store.ts";
import type { BudgetScope } from "../../src/domain/money/budget.ts";
import type { LimitScope } from "../../src/domain/limits/limit-scope.ts";
import type {
  LimitDecision,
  LimitRequest,
  LimitStore,
} from "../../src/store/limits/limit-store.ts";
import { limitsById, type LimitsOfId } from "../support/limits-by-id.ts";
import { ScopeAudit } from "./scope-audit.ts";
import { changeGraceMs, type KeyRegister } from "./key-register.ts";
import type { Random } from "./random.ts";
import { ProcessClock } from "./virtual-time.ts";
import { violate, type World } from "./world.ts";

/** A client of the limiter: a gateway's process, which may end while it waits. */
export interface LimiterClient {
  readonly process: string;
  readonly clock: ProcessClock;
}

/** One reservation, from the limiter's side. */
export interface Reservation {
  readonly callId: string;
  readonly process: string;
  readonly scopes: readonly string[];
  readonly tokens: number;
  readonly admittedAt: number;
  settledTokens: number | undefined;
}

type Direct = Pick<
  LimitStore,
  "process" | "placeOf" | "count" | "uncount" | "acquire" | "use" | "settle"
>;

const slowFactor = 20;

/**
 * The single limiter of all gateways: the real store, reached over a network that delays every
 * message and loses none. Each decision is checked against all earlier ones.
 */
export class SharedLimiter {
  readonly reservations = new Map<string, Reservation>();
  readonly #world: World;
  readonly #clock: ProcessClock;
  readonly #store: MemoryLimitStore;
  readonly #keys: KeyRegister;
  readonly #random: Random;
  readonly #audits = new Map<string, ScopeAudit>();
  #extraDelayMs = 0;
  #longestAnswerMs = 0;

  constructor(world: World, keys: KeyRegister) {
    this.#world = world;
    this.#keys = keys;
    this.#random = world.random.fork("limiter");
    this.#clock = new ProcessClock(world.time, { monotonicMs: 77_123.4, wallMs: 0 });
    this.#store = new MemoryLimitStore({
      clock: this.#clock,
      random: this.#random.next,
    });
  }

  /** The longest round trip of a request so far. */
  get longestAnswerMs(): number {
    return this.#longestAnswerMs;
  }

  get unsettled(): readonly Reservation[] {
    return [...this.reservations.values()].filter(
      ({ settledTokens }) => settledTokens === undefined,
    );
  }

  get audits(): readonly ScopeAudit[] {
    return [...this.#audits.values()];
  }

  slowDown(delayMs: number, forMs: number): void {
    this.#extraDelayMs = delayMs;
    this.#world.time.schedule(() => (this.#extraDelayMs = 0), forMs);
  }

  clientOf(client: LimiterClient): LimitStore {
    const direct = this.#directOf(client);
    switch (this.#world.scenario.limiter.kind) {
      case "local":
        return direct;
      case "networked":
        return this.#networkedOf(direct, client);
    }
  }

  #directOf(client: LimiterClient) {
    return {
      process: "simulated",
      placeOf: (scope: BudgetScope) => scope,
      // Calls of the simulation are not counted before: admission counts them.
      count: notCounted,
      uncount: notCounted,
      acquire: (request: LimitRequest) => this.#decide(request, client),
      use: (callId: string, tokens: number) => this.#use(callId, tokens),
      settle: (callId: string, tokens: number) => this.#settle(callId, tokens),
    };
  }

  #networkedOf(direct: Direct, { clock }: LimiterClient): LimitStore {
    const send = <Answer>(act: () => Answer | Promise<Answer>): Promise<Answer> =>
      new Promise((resolve) => {
        // Messages that are in transit arrive even if their process has ended.
        this.#world.time.schedule(() => {
          const answer = act();
          clock.schedule(() => resolve(answer), this.#delay());
        }, this.#delay());
      });
    return {
      ...direct,
      acquire: (request) => this.#timed(send(() => direct.acquire(request))),
      use: (callId, tokens) => send(() => direct.use(callId, tokens)),
      settle: (callId, tokens) => send(() => direct.settle(callId, tokens)),
    };
  }

  async #timed<Answer>(answer: Promise<Answer>): Promise<Answer> {
    const askedAt = this.#world.time.now;
    const answered = await answer;
    this.#longestAnswerMs = Math.max(this.#longestAnswerMs, this.#world.time.now - askedAt);
    return answered;
  }

  /** Checks the Retry-After of a single request, and that it is admitted afterwards. */
  probe(scopeId: string): void {
    const audit = this.#audits.get(scopeId);
    if (audit === undefined) return;
    const { time } = this.#world;
    const tokens = this.#random.whole(1, audit.latest.tokens);
    const request = { callId: `probe ${scopeId}`, scopes: scopesOf(audit.latest), tokens };
    const decision = this.#store.acquire(request);
    if (decision.isAdmitted) return this.#store.settle(request.callId, 0);
    if (decision.retryAfterMs === undefined) return;
    time.schedule(() => {
      if (this.#store.acquire(request).isAdmitted) return;
      violate(this.#world, "I3", `${scopeId} waited ${decision.retryAfterMs} ms in vain`);
    }, decision.retryAfterMs);
  }

  #delay(): number {
    const { delayMs, slowShare } = this.#world.scenario.limiter;
    const isSlow = this.#random.chance(slowShare);
    const usual = delayMs * (0.5 + this.#random.next()) * (isSlow ? slowFactor : 1);
    return usual + this.#extraDelayMs * this.#random.next();
  }

  #decide(request: LimitRequest, { process }: LimiterClient): LimitDecision {
    const { callId, tokens, mostTokens: most = tokens } = request;
    const scopes = limitsById(request.scopes);
    const audits = scopes.map((scope) => this.#auditOf(scope.id));
    const before = scopes.map((scope) => this.#store.peek(scopesOf(scope)));
    const decision = this.#store.acquire(request);
    const now = this.#world.time.now;
    const [call = callId] = callId.split("/");
    this.#world.log.note(
      `limiter ${decision.isAdmitted ? "admits" : "refuses"} ${callId} ${tokens} ` +
        scopes.map(({ id }) => id).join(" "),
      call,
    );
    const problems: readonly (readonly [string, string])[] = decision.isAdmitted
      ? audits.flatMap((audit, index) => {
          const scope = scopes[index];
          return scope === undefined ? [] : audit.admitted({ callId, scope, tokens, most, now });
        })
      : this.#checkRefusal(request, decision, before);
    for (const [rule, text] of problems) violate(this.#world, rule, text, call);
    for (const scope of scopes) this.#checkLimits(scope, call);
    if (decision.isAdmitted) this.#checkState(decision, audits[0]);
    if (decision.isAdmitted) {
      if (this.reservations.has(callId)) violate(this.#world, "I5", `${callId} twice`, call);
      this.reservations.set(callId, {
        callId,
        process,
        scopes: scopes.map(({ id }) => id),
        tokens,
        admittedAt: now,
        settledTokens: undefined,
      });
    }
    return decision;
  }

  /** The limits of a call are those of its key on arrival, and the unsold part of a pool. */
  #checkLimits(scope: LimitsOfId, call: string): void {
    const record = this.#world.calls.get(call);
    const kind = scope.id.split(":")[0];
    const { window, requests, tokens } = scope;
    let isRight = true;
    if (kind === "key") {
      const limits = { requestsPerMinute: requests, tokensPerMinute: tokens };
      isRight = Bun.deepEquals(limits, record?.limits);
    }
    if (kind === "guarantee" && window !== "minute") {
      const bought = ((record?.guaranteedTokens ?? Number.NaN) * window.seconds) / 60;
      isRight = requests === Infinity && tokens === Math.floor(bought);
    }
    if (kind === "pool") {
      const isOpen = requests === Infinity && tokens === this.#openTokens(scope.id);
      isRight = this.#hasChangedLately() || isOpen;
    }
    if (isRight) return;
    const text = `${scope.id} is held to ${JSON.stringify(scope)}`;
    violate(this.#world, "limits", text, call);
  }

  /** Earlier requests may still be in transit. */
  #hasChangedLately(): boolean {
    return this.#world.time.now - this.#keys.changedAt < changeGraceMs;
  }

  /** A pool's tokens for calls without a guarantee. Independent of the checked arithmetic. */
  #openTokens(scopeId: string): number | undefined {
    const pool = this.#world.scenario.pools.find(({ name }) => scopeId === `pool:${name}`);
    if (pool === undefined) return undefined;
    const sold = this.#keys.soldUnits(pool.name) * pool.unitTokensPerMinute;
    return Math.max(0, pool.tokensPerMinute - Math.ceil((sold * 60) / 59));
  }

  #checkRefusal(
    request: LimitRequest,
    decision: Extract<LimitDecision, { isAdmitted: false }>,
    before: readonly ReturnType<MemoryLimitStore["peek"]>[],
  ): readonly (readonly [string, string])[] {
    const { tokens, mostTokens: most = tokens } = request;
    const scopes = limitsById(request.scopes);
    const problems: (readonly [string, string])[] = [];
    scopes.forEach((scope, index) => {
      const after = this.#store.peek(scopesOf(scope));
      if (!Bun.deepEquals(after, before[index])) {
        problems.push(["I4", `a refusal changed ${scope.id}`]);
      }
    });
    const refusing = scopes.find(({ id }) => id === decision.scopeId);
    const audit = this.#audits.get(decision.scopeId);
    const { dimension, overrun } = decision;
    if (refusing === undefined || audit === undefined || dimension === "money") {
      problems.push(["I7", `${decision.scopeId} refused and was not asked`]);
    } else {
      const asked = { scope: refusing, tokens, most, now: this.#world.time.now };
      problems.push(
        ...(overrun === undefined
          ? audit.refused(asked, dimension)
          : audit.refusedForOverrun(asked)),
      );
    }
    return problems;
  }

  #checkState(
    { state }: Extract<LimitDecision, { isAdmitted: true }>,
    audit: ScopeAudit | undefined,
  ): void {
    const { remainingRequests, remainingTokens, limitRequests, limitTokens } = state;
    const held = audit?.heldAtMost(this.#world.time.now) ?? { requests: 0, tokens: 0 };
    const isRight =
      remainingRequests >= Math.max(0, limitRequests - held.requests) &&
      remainingTokens >= Math.max(0, limitTokens - held.tokens) &&
      remainingRequests <= limitRequests &&
      remainingTokens <= limitTokens;
    if (!isRight) violate(this.#world, "I6", `${audit?.id} told ${JSON.stringify(state)}`);
  }

  #use(callId: string, tokens: number): void {
    const reservation = this.reservations.get(callId);
    this.#store.use(callId, tokens);
    if (reservation === undefined || reservation.settledTokens !== undefined) return;
    const now = this.#world.time.now;
    for (const scope of reservation.scopes) this.#auditOf(scope).used(callId, tokens, now);
  }

  #settle(callId: string, tokens: number): void {
    const reservation = this.reservations.get(callId);
    const now = this.#world.time.now;
    const call = callId.split("/")[0];
    this.#world.log.note(`limiter settles ${callId} with ${tokens}`, call);
    this.#store.settle(callId, tokens);
    if (reservation === undefined) return;
    if (reservation.settledTokens !== undefined) {
      violate(this.#world, "I5", `${callId} was settled twice`, call);
      return;
    }
    reservation.settledTokens = tokens;
    for (const scope of reservation.scopes) this.#auditOf(scope).settled(callId, tokens, now);
    this.#settleAgain(reservation);
  }

  /** Repeats a message, which must not change anything. */
  #settleAgain({ callId, scopes }: Reservation): void {
    if (!this.#random.chance(0.05)) return;
    const states = (): unknown =>
      scopes.map((id) => this.#store.peek(scopesOf(this.#auditOf(id).latest)));
    const before = states();
    this.#store.settle(callId, this.#random.whole(0, 5_000));
    if (Bun.deepEquals(states(), before)) return;
    violate(this.#world, "I5", `${callId} settled again changed a window`);
  }

  #auditOf(scopeId: string): ScopeAudit {
    let audit = this.#audits.get(scopeId);
    if (audit === undefined) {
      audit = new ScopeAudit(scopeId);
      this.#audits.set(scopeId, audit);
    }
    return audit;
  }
}

function scopesOf({ requests, tokens, overrunFactor, ...of }: LimitsOfId): LimitScope[] {
  return [
    { ...of, unit: "requests", limit: requests },
    { ...of, unit: "tokens", limit: tokens, overrunFactor },
  ];
}

function notCounted(): never {
  throw new Error("a call of the simulation was counted before its admission");
}
