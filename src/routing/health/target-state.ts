import type { UpstreamFailureDetails } from "../../domain/errors/upstream-failure.ts";
import type { ConcurrencyLimit } from "./concurrency-limit.ts";
import { Suspicion } from "./suspicion.ts";
import { TargetPause } from "./target-pause.ts";
import {
  type Moment,
  type StandingAttempt,
  type TargetChange,
  TargetStanding,
} from "./target-standing.ts";
import type { TargetView } from "../target-view.ts";
import { WaitingAttempts } from "./waiting-attempts.ts";

/** How an attempt ended: completed, abandoned by its caller, or failed. */
export type ObservedEnd = "ok" | "left" | UpstreamFailureDetails;

/** Result of a probe; `nothing` if it could not be sent. */
export type ProbeResult = "answered" | "nothing" | UpstreamFailureDetails;

/** The key of an attempt, and what it is exempt from. */
export interface AttemptTerms {
  readonly key: string;
  /** Default: one of the key's own. */
  readonly account?: string;
  readonly isStreamed: boolean;
  /** Nothing better is left: the target serves even if it is ejected or in slow start. */
  readonly hasToServe?: boolean;
  /** The call is within provisioned units. */
  readonly isGuaranteed?: boolean;
}

/** A running attempt. */
interface WatchedAttempt {
  readonly account: string;
  readonly isStreamed: boolean;
  readonly beganMs: number;
  readonly standing: StandingAttempt;
  isAnswered: boolean;
  /** Called when the target is found to be silent while the attempt is overdue. */
  onSilent?: () => void;
}

/** Timeout of a probe as a part of the time out of service. */
const probeTimeoutShare = 1 / 20;

/** The health of one target, of bounded size. */
export class TargetState {
  readonly #standing = new TargetStanding();
  /** Its places are taken together with those of the pool and the upstream. */
  readonly limit: ConcurrencyLimit;
  readonly #pause = new TargetPause();
  readonly #streams = new WaitingAttempts<WatchedAttempt>();
  readonly #wholes = new WaitingAttempts<WatchedAttempt>();
  readonly #suspicion = new Suspicion();
  /** A probe timed out, and no answer has come since. */
  #isSilent = false;

  constructor(limit: ConcurrencyLimit) {
    this.limit = limit;
  }

  /** Undefined when the target takes no further attempt of the key now. */
  tryBegin(nowMs: number, terms: AttemptTerms): WatchedAttempt | undefined {
    const { key, account = key, isStreamed, hasToServe = false, isGuaranteed = false } = terms;
    if (!hasToServe && this.#isClosed(key, nowMs)) return undefined;
    if (!hasToServe && !isGuaranteed && !this.#standing.hasRoom(key, nowMs)) return undefined;
    const standing = this.#standing.begin(key, nowMs);
    const attempt = { account, isStreamed, beganMs: nowMs, standing, isAnswered: false };
    this.#waitingOf(attempt).add(attempt);
    return attempt;
  }

  /** The first event of a stream, or a whole answer, arrived. */
  answered(attempt: WatchedAttempt, nowMs: number): readonly TargetChange[] {
    const { key } = attempt.standing;
    attempt.isAnswered = true;
    this.#isSilent = false;
    this.#waitingOf(attempt).answered(attempt, nowMs);
    this.#pause.answered(key, nowMs);
    this.limit.succeeded(key, nowMs);
    return this.#standing.answered(attempt.standing, nowMs);
  }

  ended(attempt: WatchedAttempt, end: ObservedEnd, moment: Moment): readonly TargetChange[] {
    const { nowMs } = moment;
    const { standing, isAnswered } = attempt;
    this.#waitingOf(attempt).ended(attempt);
    if (end === "left" && !isAnswered) {
      // While the target is silent, waiting times do not show its usual answer time.
      const { time } = this.#waitingOf(attempt);
      if (!this.#isSilent) time.unanswered(nowMs, nowMs - attempt.beganMs);
    } else if (typeof end !== "string") this.#learn(attempt, end, nowMs);
    standing.all.slowStart?.leave();
    standing.own?.slowStart?.leave();
    if (end === "ok") return this.#standing.endedWell(standing, nowMs);
    if (end === "left") return [];
    switch (evidenceOf(end)) {
      case "neither":
        return [];
      case "life":
        return this.#standing.lived(standing, nowMs);
      case "failure":
        return this.#failed(attempt, end, moment);
    }
  }

  /** False while a probe is running. Otherwise `probeEnded` must be called. */
  tryBeginProbe(): boolean {
    return this.#suspicion.tryBeginProbe();
  }

  probeEnded(result: ProbeResult, moment: Moment): readonly TargetChange[] {
    const { nowMs } = moment;
    const evidence = typeof result === "string" ? result : evidenceOf(result);
    if (typeof result !== "string" && result.kind === "throttled") {
      this.#pause.throttled("", nowMs, result);
    }
    if (evidence === "answered" || evidence === "life") {
      this.#isSilent = false;
      this.#suspicion.cleared(nowMs);
      return this.#standing.probeAnswered(nowMs);
    }
    this.#suspicion.ended();
    if (evidence !== "failure" || typeof result === "string") return [];
    const change = this.#standing.probeFailed(result.kind, moment);
    if (result.kind === "timed-out" || result.kind === "connect-failed") this.#fellSilent(nowMs);
    return change === undefined ? [] : [change];
  }

  /**
   * Timeout of a probe's first event. It grows with the time out of service: the target may be
   * slower.
   */
  probeTimeoutMs(nowMs: number): number {
    // Whole answers take at least as long as their first event.
    const usualMs = Math.min(this.#streams.time.overdueAfterMs, this.#wholes.time.overdueAfterMs);
    return Math.max(usualMs, this.#standing.outForMs(nowMs) * probeTimeoutShare);
  }

  /** Time after which an attempt that begins now is overdue. */
  overdueAfterMs({ isStreamed }: Pick<WatchedAttempt, "isStreamed">): number {
    return this.#waitingOf({ isStreamed }).time.overdueAfterMs;
  }

  /** Calls `run` when the target is found to be silent while the attempt is overdue. */
  whenSilent(attempt: WatchedAttempt, nowMs: number, run: () => void): void {
    attempt.onSilent = run;
    const isWaiting = !attempt.isAnswered && this.#waitingOf(attempt).isOverdue(attempt, nowMs);
    if (this.#isSilent && isWaiting) run();
  }

  viewAt(nowMs: number, key: string): TargetView {
    const standing = this.#standing;
    const ejection = standing.ejectionFor(key, nowMs);
    return {
      isEjected: ejection.isEjected,
      ejectedForMs: ejection.leftMs(nowMs),
      because: ejection.because,
      pausedForMs: this.#pause.leftMs(key, nowMs),
      isStartingSlowly: standing.isStartingSlowly(key, nowMs),
      needsProbe: this.#needsProbe(ejection.isDue(nowMs), nowMs),
      failureShare: standing.failureShare(nowMs),
      firstEventMs: this.#streams.time.averageAt(nowMs),
      inFlight: this.limit.inFlight,
      limit: this.limit.limitAt(nowMs),
    };
  }

  #isClosed(key: string, nowMs: number): boolean {
    return this.#standing.isEjectedFor(key) || this.#pause.leftMs(key, nowMs) > 0;
  }

  #needsProbe(isDue: boolean, nowMs: number): boolean {
    if (isDue) return !this.#suspicion.isProbing;
    if (this.#standing.isEjectedForAll) return false;
    const isSilent = this.#streams.isSilent(nowMs) || this.#wholes.isSilent(nowMs);
    return this.#suspicion.isWarranted(isSilent, nowMs);
  }

  #waitingOf({ isStreamed }: Pick<WatchedAttempt, "isStreamed">) {
    return isStreamed ? this.#streams : this.#wholes;
  }

  #failed(
    { standing, isAnswered }: WatchedAttempt,
    { kind }: UpstreamFailureDetails,
    moment: Moment,
  ): readonly TargetChange[] {
    const change = this.#standing.failed(standing, kind, { ...moment, isAnswered });
    if (change === undefined) return [];
    // A probe decides whether the target is broken or only the requests of this key fail.
    if (change.key !== undefined) this.#suspicion.raise();
    return [change];
  }

  /** Updates limit, suspicion and pauses after a failure. */
  #learn(
    { account, standing, isAnswered }: WatchedAttempt,
    failure: UpstreamFailureDetails,
    nowMs: number,
  ): void {
    const { kind, retryAfterMs } = failure;
    const { key } = standing;
    if (isOverload(failure, isAnswered)) this.limit.overloaded(key, nowMs);
    if (kind === "timed-out" && !isAnswered) this.#suspicion.raise();
    const refusal = { retryAfterMs, account };
    if (kind === "throttled") this.#pause.throttled(key, nowMs, refusal);
    // After any other failure, a Retry-After says when to repeat this request, not who may call.
    else if (kind !== "overloaded" || retryAfterMs === undefined) return;
    else this.#pause.asked(key, nowMs, refusal);
    const forAllMs = this.#pause.leftForAllMs(nowMs);
    this.#standing.startSlowly(key, nowMs + this.#pause.leftMs(key, nowMs));
    if (forAllMs > 0) this.#standing.startSlowly(undefined, nowMs + forAllMs);
  }

  #fellSilent(nowMs: number): void {
    this.#isSilent = true;
    for (const { onSilent } of [...this.#streams.overdue(nowMs), ...this.#wholes.overdue(nowMs)]) {
      onSilent?.();
    }
  }
}

/** What the end of an attempt shows about its target. */
type Evidence = "life" | "failure" | "neither";

/** Whether a failure shows that its target is broken. */
function evidenceOf({ kind, isOwn }: UpstreamFailureDetails): Evidence {
  if (isOwn === true) return "neither";
  switch (kind) {
    case "overloaded":
    case "unavailable":
    case "connect-failed":
    case "timed-out":
    case "connection-lost":
    case "broken-answer":
    case "bad-credential":
    case "account-blocked":
    case "unknown-model":
      return "failure";
    // A quota is not a fault: the target pauses for it.
    case "throttled":
    case "answer-too-large":
    case "unfit-answer":
    case "unsupported":
    case "context-overflow":
    case "invalid-request":
    case "content-refused":
      return "life";
    // The same attempt is repeated with a fresh credential, which decides.
    case "stale-credential":
      return "neither";
  }
}

/**
 * Whether a failure shows that the target is overloaded. A quota does not: it lasts a minute. A
 * timeout after the first event does not either: the target had accepted the request.
 */
function isOverload({ kind, isOwn }: UpstreamFailureDetails, isAnswered: boolean): boolean {
  if (isOwn === true) return false;
  return kind === "overloaded" || (kind === "timed-out" && !isAnswered);
}
