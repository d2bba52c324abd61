import type { UpstreamFailureKind } from "../../domain/errors/failure-kind.ts";
import type { UpstreamFailureDetails } from "../../domain/errors/upstream-failure.ts";
import type { TargetFacts } from "../../domain/live-facts.ts";
import type { OutSettings } from "../../domain/settings.ts";
import type { TargetView } from "../target-view.ts";
import { AnswerTime } from "./answer-time.ts";
import { AttemptCounts } from "./attempt-counts.ts";
import type { ConcurrencyLimit } from "./concurrency-limit.ts";
import { evidenceOf, isOverload } from "./evidence.ts";
import { FailureTally, type KeyOf } from "./failure-tally.ts";
import { type OutNotice, longestAskedMs, type OutReason, OutUntil } from "./out-until.ts";

/**
 * How an attempt ended: completed, abandoned by its caller, beaten by a hedge though its answer was
 * overdue, or failed.
 */
export type ObservedEnd = "ok" | "left" | "silent" | UpstreamFailureDetails;

/** Result of a probe; `nothing` if it could not be sent. */
export type ProbeResult = "answered" | "nothing" | UpstreamFailureDetails;

export interface AttemptTerms {
  readonly key: string;
  /** Default: one of the key's own. */
  readonly account?: string;
  readonly isStreamed: boolean;
  /** Nothing better is left: the target serves even if it is out. */
  readonly hasToServe?: boolean;
}

/** A change that operators are told of. */
export interface TargetChange {
  /** Undefined: all keys. */
  readonly key: string | undefined;
  /** Undefined: the target returned. */
  readonly notice: OutNotice | undefined;
}

export interface Moment {
  readonly nowMs: number;
  readonly settings: OutSettings;
}

export interface WatchedAttempt extends KeyOf {
  readonly isStreamed: boolean;
  readonly beganMs: number;
  /** The periods in which it began, for all keys and for its own. */
  allPeriod: number;
  ownPeriod: number;
  isAnswered: boolean;
}

/** Limit on keys whose time out is known; the oldest is dropped, one in service first. */
const mostKeys = 64;
/** Timeout of a probe as a part of the time out of service. */
const probeTimeoutShare = 1 / 20;
/** The usual time of a target that is not known yet. */
const unknownTimeMs = 3_000;

/**
 * The health of one target, of bounded size. It is out until a time for a key whose calls fail or
 * are refused, and for all keys when those of several are, or when a probe fails.
 */
export class TargetState {
  /** Its places are taken together with those of the pool and the upstream. */
  readonly limit: ConcurrencyLimit;
  readonly counts = new AttemptCounts();
  readonly #forAll = new OutUntil();
  readonly #byKey = new Map<string, OutUntil>();
  /** Failures before and after the first event: an answer resets only the first. */
  readonly #unanswered = new FailureTally();
  readonly #brokenOff = new FailureTally();
  readonly #streams = new AnswerTime();
  readonly #wholes = new AnswerTime();
  #isProbing = false;
  /** When an attempt or a probe last showed that it works. */
  #livedMs = Number.NEGATIVE_INFINITY;

  constructor(limit: ConcurrencyLimit) {
    this.limit = limit;
  }

  /** Undefined when the target is out for the key. */
  tryBegin(nowMs: number, terms: AttemptTerms): WatchedAttempt | undefined {
    const { key, account = key, isStreamed, hasToServe = false } = terms;
    const own = this.#byKey.get(key);
    if (!hasToServe && (this.#forAll.isOut || own?.isOut === true)) return undefined;
    const allPeriod = this.#forAll.period;
    const ownPeriod = own?.period ?? 0;
    return { key, account, isStreamed, beganMs: nowMs, allPeriod, ownPeriod, isAnswered: false };
  }

  /** The first event of a stream, or a whole answer, arrived. */
  answered(attempt: WatchedAttempt, nowMs: number): readonly TargetChange[] {
    attempt.isAnswered = true;
    this.#timeOf(attempt).answered(nowMs - attempt.beganMs);
    this.limit.succeeded(attempt.key, nowMs);
    return this.#lived(attempt, nowMs);
  }

  ended(attempt: WatchedAttempt, end: ObservedEnd, moment: Moment): readonly TargetChange[] {
    const { nowMs } = moment;
    const { key, isAnswered } = attempt;
    if (end === "left") return [];
    if (end === "ok") {
      const changes = this.#returned(attempt, nowMs);
      if (this.#isCurrent(attempt)) this.#brokenOff.succeeded(attempt, nowMs);
      return changes;
    }
    if (end === "silent") return this.#failed(attempt, end, moment);
    if (isOverload(end, isAnswered)) this.limit.overloaded(key, nowMs);
    switch (evidenceOf(end)) {
      case "neither":
        return [];
      case "life":
        return this.#lived(attempt, nowMs);
      case "refusal":
        return this.#refused(attempt, end, moment);
      case "failure":
        return this.#failed(attempt, end.kind, moment);
    }
  }

  /** False while a probe is running. Otherwise `probeEnded` must be called. */
  tryBeginProbe(): boolean {
    if (this.#isProbing) return false;
    this.#isProbing = true;
    return true;
  }

  probeEnded(result: ProbeResult, moment: Moment): readonly TargetChange[] {
    this.#isProbing = false;
    const { nowMs } = moment;
    const evidence = typeof result === "string" ? result : evidenceOf(result);
    if (evidence === "answered" || evidence === "life") return this.#returnDue(nowMs);
    if (typeof result === "string" || evidence === "neither") return this.#askLater(moment);
    if (this.#forAll.isOut && !this.#forAll.isDue(nowMs)) return [];
    const { kind, retryAfterMs } = result;
    const isRefusal = evidence === "refusal";
    if (isRefusal && !this.#forAll.isOut) return this.#askLater(moment, retryAfterMs);
    return this.#takeOut(undefined, moment, {
      because: `a probe failed: ${kind}`,
      isRefusal,
      retryAfterMs: isRefusal ? retryAfterMs : blockedMs(kind),
    });
  }

  /**
   * Timeout of a probe's first event. It grows with the time out of service: the target may be
   * slower.
   */
  probeTimeoutMs(nowMs: number): number {
    // Whole answers take at least as long as their first event.
    const usualMs = Math.min(this.#streams.overdueAfterMs, this.#wholes.overdueAfterMs);
    const knownMs = usualMs === Infinity ? unknownTimeMs : usualMs;
    return Math.max(knownMs, this.#forAll.outForMs(nowMs) * probeTimeoutShare);
  }

  /** Time after which an attempt that begins now is overdue. */
  overdueAfterMs(attempt: Pick<WatchedAttempt, "isStreamed">): number {
    return this.#timeOf(attempt).overdueAfterMs;
  }

  viewAt(nowMs: number, key: string): TargetView {
    const out = this.#outFor(key, nowMs);
    return {
      isOut: out.isOut,
      outForMs: out.leftMs(nowMs),
      because: out.because,
      isRefusing: this.#forAll.refusesAt(nowMs) || this.#byKey.get(key)?.refusesAt(nowMs) === true,
      needsProbe: out.isDue(nowMs) && !this.#isProbing,
    };
  }

  /** `now`: the wall clock. */
  factsAt(
    id: string,
    { nowMs, now }: { readonly nowMs: number; readonly now: number },
  ): TargetFacts {
    const { isOut, isRefusal, because } = this.#forAll;
    const limit = this.limit.limitAt(nowMs);
    const keysOut = [...this.#byKey.values()].filter((own) => own.isOut);
    const failing = keysOut.find((own) => !own.isRefusal && own.sinceMs > this.#livedMs);
    return {
      id,
      out: isOut ? { untilAt: now + this.#forAll.leftMs(nowMs), because } : undefined,
      isThrottled: isOut && isRefusal,
      failing: isOut ? undefined : failing?.because,
      keysOut: keysOut.length,
      inFlight: this.limit.inFlight,
      limit: limit === Infinity ? undefined : Math.floor(limit),
      ended: this.counts.at(now),
    };
  }

  /** The longer of those that apply to the key. */
  #outFor(key: string, nowMs: number): OutUntil {
    const own = this.#byKey.get(key);
    const isOwn = own?.isOut === true && own.leftMs(nowMs) >= this.#forAll.leftMs(nowMs);
    return isOwn ? own : this.#forAll;
  }

  #timeOf({ isStreamed }: Pick<WatchedAttempt, "isStreamed">): AnswerTime {
    return isStreamed ? this.#streams : this.#wholes;
  }

  /** The target showed that it works, even if the attempt then failed. */
  #lived(attempt: WatchedAttempt, nowMs: number): readonly TargetChange[] {
    const changes = this.#returned(attempt, nowMs);
    if (this.#isCurrent(attempt)) this.#unanswered.succeeded(attempt, nowMs);
    return changes;
  }

  /** Ends what was due when the attempt began. */
  #returned(attempt: WatchedAttempt, nowMs: number): readonly TargetChange[] {
    const { key, beganMs } = attempt;
    this.#livedMs = nowMs;
    const own = this.#byKey.get(key);
    const changes: TargetChange[] = [];
    if (this.#forAll.period === attempt.allPeriod && this.#forAll.isDue(beganMs)) {
      changes.push(...this.#return(undefined, nowMs));
      attempt.allPeriod = this.#forAll.period;
    }
    if (own !== undefined && own.period === attempt.ownPeriod && own.isDue(beganMs)) {
      changes.push(...this.#return(key, nowMs));
      attempt.ownPeriod = own.period;
    }
    return changes;
  }

  #failed(
    attempt: WatchedAttempt,
    kind: UpstreamFailureKind | "silent",
    moment: Moment,
  ): readonly TargetChange[] {
    if (!this.#isCurrent(attempt)) return [];
    const { nowMs, settings } = moment;
    const { key, beganMs, isAnswered } = attempt;
    const retryAfterMs = blockedMs(kind);
    const out = (whose: KeyOf | undefined, why: string): readonly TargetChange[] => {
      const because = `${why}, at last: ${kind}`;
      return this.#takeOut(whose, moment, { because, isRefusal: false, retryAfterMs });
    };
    const own = this.#byKey.get(key);
    if (this.#forAll.isOut || own?.isOut === true) {
      const tried = this.#forAll.isOut ? this.#forAll : own;
      if (tried?.isDue(beganMs) !== true) return [];
      return out(
        tried === this.#forAll ? undefined : attempt,
        "the attempt after its time out failed",
      );
    }
    if (retryAfterMs !== undefined) return out(undefined, "its account is not served");
    const tally = isAnswered ? this.#brokenOff : this.#unanswered;
    tally.failed(attempt, nowMs);
    const forAll = tally.reasonForAll(nowMs, settings);
    if (forAll !== undefined) return out(undefined, forAll);
    const forKey = tally.reasonForKey(key, nowMs, settings);
    return forKey === undefined ? [] : out(attempt, forKey);
  }

  /**
   * The provider refused the attempt until a time. That is for the key, whose own requests may be
   * the cause, and for all as long as keys of two accounts are refused.
   */
  #refused(
    attempt: WatchedAttempt,
    { kind, retryAfterMs = 0 }: UpstreamFailureDetails,
    moment: Moment,
  ): readonly TargetChange[] {
    const { nowMs } = moment;
    const { account, beganMs } = attempt;
    const reason = { because: `its provider refuses: ${kind}`, isRefusal: true };
    if (this.#forAll.isDue(beganMs) && this.#forAll.period === attempt.allPeriod) {
      this.#takeOut(undefined, moment, reason);
    }
    const own = this.#ownOf(attempt);
    if (!own.isOut || (own.isDue(beganMs) && own.period === attempt.ownPeriod)) {
      this.#takeOut(attempt, moment, { ...reason, retryAfterMs });
    } else own.prolong(nowMs + Math.min(retryAfterMs, longestAskedMs));
    const sharedMs = this.#refusedElsewhereMs(account, nowMs);
    if (sharedMs === 0) return [];
    const bothMs = Math.min(sharedMs, own.leftMs(nowMs));
    if (this.#forAll.isOut) this.#forAll.prolong(nowMs + bothMs);
    else this.#takeOut(undefined, moment, { ...reason, retryAfterMs: bothMs });
    return [];
  }

  /** How long a key of another account is refused. */
  #refusedElsewhereMs(account: string, nowMs: number): number {
    let longestMs = 0;
    for (const out of this.#byKey.values()) {
      if (!out.isRefusal || out.accountId === account) continue;
      longestMs = Math.max(longestMs, out.leftMs(nowMs));
    }
    return longestMs;
  }

  /** Whether nothing was taken out of service or returned since the attempt began. */
  #isCurrent({ key, allPeriod, ownPeriod }: WatchedAttempt): boolean {
    return allPeriod === this.#forAll.period && ownPeriod === (this.#byKey.get(key)?.period ?? 0);
  }

  #takeOut(
    whose: KeyOf | undefined,
    { nowMs, settings }: Moment,
    reason: OutReason,
  ): readonly TargetChange[] {
    const key = whose?.key;
    for (const tally of [this.#unanswered, this.#brokenOff]) {
      if (whose === undefined) tally.clear();
      else tally.forget(whose);
    }
    const out = whose === undefined ? this.#forAll : this.#ownOf(whose);
    const notice = out.begin(nowMs, settings, reason);
    return notice === undefined ? [] : [{ key, notice }];
  }

  /** The probe tells nothing about those who are not out: the due times go on, at least for as long. */
  #askLater({ nowMs, settings }: Moment, retryAfterMs = 0): readonly TargetChange[] {
    const { firstMs, longestMs } = settings;
    for (const out of [this.#forAll, ...this.#byKey.values()]) {
      if (!out.isDue(nowMs)) continue;
      const askedMs = Math.min(retryAfterMs, longestAskedMs);
      const asBeforeMs = Math.min(longestMs, out.outForMs(nowMs));
      out.prolong(nowMs + Math.max(firstMs, askedMs, asBeforeMs));
    }
    return [];
  }

  #returnDue(nowMs: number): readonly TargetChange[] {
    this.#livedMs = nowMs;
    const changes = this.#forAll.isDue(nowMs) ? [...this.#return(undefined, nowMs)] : [];
    for (const [key, own] of this.#byKey) {
      if (own.isDue(nowMs)) changes.push(...this.#return(key, nowMs));
    }
    return changes;
  }

  #return(key: string | undefined, nowMs: number): readonly TargetChange[] {
    if (key === undefined) {
      this.#unanswered.clear();
      this.#brokenOff.clear();
    }
    const out = key === undefined ? this.#forAll : this.#byKey.get(key);
    return out?.end(nowMs) === true ? [{ key, notice: undefined }] : [];
  }

  #ownOf({ key, account }: KeyOf): OutUntil {
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    if (this.#byKey.size >= mostKeys) {
      const all = [...this.#byKey];
      const [dropped] = all.find(([, out]) => !out.isOut) ?? all[0] ?? [key];
      this.#byKey.delete(dropped);
    }
    const own = new OutUntil(account);
    this.#byKey.set(key, own);
    return own;
  }
}

/**
 * An account that the provider does not serve stays so until somebody pays, so there is no point in
 * asking every few seconds. No request can be the cause.
 */
const blockedForMs = 300_000;

function blockedMs(kind: UpstreamFailureKind | "silent"): number | undefined {
  return kind === "account-blocked" ? blockedForMs : undefined;
}
