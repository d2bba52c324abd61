import type { LimitsOfId } from "../support/limits-by-id.ts";

interface Admitted {
  readonly callId: string;
  readonly at: number;
  readonly reserved: number;
  /** The limits that applied to it. */
  readonly scope: LimitsOfId;
  /** The most tokens that it may use. */
  readonly most: number;
  /** The tokens charged for it. */
  charged: number;
  tokens: number;
}

interface Asked {
  readonly scope: LimitsOfId;
  readonly tokens: number;
  readonly most: number;
  readonly now: number;
}

type Problem = readonly [rule: string, text: string];

/**
 * All admissions of one scope by exact time, and the rules for them. Assumes only that a window of
 * n slots is between n - 1 and n seconds long.
 */
export class ScopeAudit {
  readonly id: string;
  readonly admissions: Admitted[] = [];
  /** Tokens used beyond a reservation, charged at its settlement. */
  readonly #debts: { readonly at: number; readonly tokens: number }[] = [];
  /** Running calls that may use more than their charge. */
  readonly #overrunning = new Set<Admitted>();
  #latest: LimitsOfId | undefined;
  /** The longest window so far. */
  #longestSeconds = 0;
  /** A growing window lacks what the shorter one has dropped. */
  #unknownBefore = Number.NEGATIVE_INFINITY;

  constructor(id: string) {
    this.id = id;
  }

  /** The scope of the last request. */
  get latest(): LimitsOfId {
    const none = { window: "minute", requests: 1, tokens: 1, overrunFactor: Infinity } as const;
    return this.#latest ?? { id: this.id, isShared: false, isAudited: false, ...none };
  }

  admitted({
    callId,
    scope,
    tokens,
    most,
    now,
  }: Asked & { readonly callId: string }): readonly Problem[] {
    this.#latest = scope;
    const admission = { callId, at: now, reserved: tokens, scope, most, charged: tokens, tokens };
    this.admissions.push(admission);
    if (most > tokens) this.#overrunning.add(admission);
    const { seconds, limits } = boundsOf(scope);
    this.#grow(seconds, now);
    const since = Math.max(now - (seconds - 1) * 1_000, this.#unknownBefore);
    const held = this.#heldSince(since, now);
    const isGuarantee = scope.window !== "minute";
    const rule = isGuarantee ? "P2" : "I2";
    const problems: Problem[] = [];
    if (held.tokens > limits.tokens) {
      problems.push([rule, `${this.id} holds ${held.tokens} of ${limits.tokens} tokens`]);
    }
    if (held.requests > limits.requests) {
      const text = `${this.id} holds ${held.requests} of ${limits.requests} requests`;
      problems.push(["I1", text]);
    }
    if (most > tokens && this.#openOverrun > overrunLimitOf(scope)) {
      problems.push(["O1", `${this.id} may use ${this.#openOverrun} tokens beyond its charges`]);
    }
    return problems;
  }

  /** A refusal for the possible overrun of calls must be justified. */
  refusedForOverrun({ scope, tokens, most, now }: Asked): readonly Problem[] {
    this.#latest = scope;
    this.#grow(boundsOf(scope).seconds, now);
    const could = this.#openOverrun + this.#owedAtMost(now) + most - tokens;
    if (could > overrunLimitOf(scope)) return [];
    return [["O2", `${this.id} refused for ${could} tokens of ${overrunLimitOf(scope)}`]];
  }

  /** The tokens that running calls may use beyond their charge. */
  get #openOverrun(): number {
    let tokens = 0;
    for (const { most, charged } of this.#overrunning) tokens += Math.max(0, most - charged);
    return tokens;
  }

  /** A refusal must be justified. */
  refused(
    { scope, tokens, now }: Omit<Asked, "most">,
    dimension: "requests" | "tokens",
  ): readonly Problem[] {
    this.#latest = scope;
    const { seconds, limits } = boundsOf(scope);
    this.#grow(seconds, now);
    const held = this.#heldSince(now - seconds * 1_000, now);
    const isJust =
      dimension === "requests"
        ? held.requests + 1 > limits.requests
        : this.#owedAtMost(now) + tokens > limits.tokens;
    if (isJust) return [];
    const rule = scope.window === "minute" ? "refusals" : "P1";
    const what = `${held.tokens} tokens and ${held.requests} requests, and ${tokens} more`;
    return [[rule, `${this.id} refused ${what} of ${JSON.stringify(limits)} in ${seconds} s`]];
  }

  /** Records the use of a running call so far. */
  used(callId: string, tokens: number, now: number): void {
    const admission = this.admissions.findLast((one) => one.callId === callId);
    if (admission === undefined || tokens <= admission.charged) return;
    this.#debts.push({ at: now, tokens: tokens - admission.charged });
    admission.charged = tokens;
  }

  settled(callId: string, tokens: number, now: number): void {
    this.used(callId, tokens, now);
    const admission = this.admissions.findLast((one) => one.callId === callId);
    if (admission === undefined) return;
    admission.tokens = tokens;
    this.#overrunning.delete(admission);
  }

  heldAtMost(now: number): { requests: number; tokens: number } {
    const { seconds } = boundsOf(this.latest);
    const held = this.#heldSince(now - seconds * 1_000, now);
    return { requests: held.requests, tokens: this.#owedAtMost(now) };
  }

  /**
   * The largest sum of charges and debt: each full window pays its limit of the use in it and
   * before, as long as there is any.
   */
  #owedAtMost(now: number): number {
    const { seconds } = boundsOf(this.latest);
    const first = this.admissions[0]?.at ?? now;
    let most = 0;
    let paid = 0;
    for (let times = 1; ; times += 1) {
      const since = now - times * seconds * 1_000;
      const debts = this.#debts.reduce((sum, { at, tokens }) => sum + (at > since ? tokens : 0), 0);
      most = Math.max(most, this.#heldSince(since, now).tokens + debts - paid);
      if (since < first) return most;
      paid += this.#leastLimit;
    }
  }

  /** The smallest of all its limits: the one that applied to a payment is unknown here. */
  get #leastLimit(): number {
    const limits = this.admissions.map(({ scope }) => boundsOf(scope).limits.tokens);
    return Math.min(boundsOf(this.latest).limits.tokens, ...limits);
  }

  /** I1 in retrospect: the use in any 60 s, except what could not be known before. */
  windows(): readonly Problem[] {
    const problems: Problem[] = [];
    let tokens = 0;
    let overruns = 0;
    const add = ({ reserved, tokens: used }: Admitted, sign: 1 | -1): void => {
      tokens += sign * used;
      overruns += sign * Math.max(0, used - reserved);
    };
    const entering = this.admissions.values();
    const leaving = this.admissions.values();
    let next = entering.next();
    let oldest = leaving.next();
    for (const last of this.admissions) {
      for (; next.done !== true && next.value.at <= last.at; next = entering.next()) {
        add(next.value, 1);
      }
      for (; oldest.done !== true && oldest.value.at < last.at - 60_000; oldest = leaving.next()) {
        add(oldest.value, -1);
      }
      if (last.scope.window !== "minute") continue;
      const limit = last.scope.tokens;
      if (tokens <= limit + overruns) continue;
      problems.push(["I1", `${this.id} used ${tokens} of ${limit} tokens in 60 s`]);
    }
    return problems;
  }

  #grow(seconds: number, now: number): void {
    if (seconds <= this.#longestSeconds) return;
    const isFirst = this.#longestSeconds === 0;
    if (!isFirst) this.#unknownBefore = now - (this.#longestSeconds - 1) * 1_000;
    this.#longestSeconds = seconds;
  }

  #heldSince(since: number, now: number): { requests: number; tokens: number } {
    let requests = 0;
    let tokens = 0;
    for (let index = this.admissions.length - 1; index >= 0; index -= 1) {
      const admission = this.admissions[index];
      if (admission === undefined || admission.at < since) break;
      if (admission.at > now) continue;
      requests += 1;
      tokens += admission.tokens;
    }
    return { requests, tokens };
  }
}

function overrunLimitOf({ tokens, overrunFactor }: LimitsOfId): number {
  return tokens * overrunFactor;
}

/** The length of a window and its limit. */
function boundsOf(limits: LimitsOfId): { seconds: number; limits: LimitsOfId } {
  const { window } = limits;
  return { seconds: window === "minute" ? 61 : Math.floor(window.seconds) - 1, limits };
}
