import type { UpstreamFailureDetails } from "../../domain/upstream-failure.ts";
import { ConcurrencyLimit } from "./concurrency-limit.ts";
import { evidenceOf, isOverload } from "./failure-evidence.ts";
import { Suspicion } from "./suspicion.ts";
import {
  TargetStanding,
  type Moment,
  type StandingAttempt,
  type TargetChange,
} from "./target-standing.ts";
import type { TargetView } from "./target-view.ts";
import { ThrottlePause } from "./throttle-pause.ts";
import { WaitingAttempts } from "./waiting-attempts.ts";

/** How an attempt ended: well, because its caller no longer wanted it, or by a failure. */
export type AttemptEnd = "ok" | "left" | UpstreamFailureDetails;

/** Who makes an attempt, and what it is not held to. */
export interface AttemptTerms {
  readonly key: string;
  readonly isStreamed: boolean;
  /** Nothing better is left, so the target serves even if it is ejected or starts slowly. */
  readonly hasToServe?: boolean;
  /** The attempt is within what was sold. */
  readonly isGuaranteed?: boolean;
}

/** An attempt under way. */
export interface WatchedAttempt {
  readonly isStreamed: boolean;
  readonly beganMs: number;
  readonly standing: StandingAttempt;
  isAnswered: boolean;
  /** Runs when the target turns out to be silent while the attempt waits for its answer. */
  onSilent?: () => void;
}

/** All that is remembered of one target, of bounded size. Callers name the time. */
export class TargetState {
  readonly #standing = new TargetStanding();
  readonly #limit = new ConcurrencyLimit();
  readonly #pause = new ThrottlePause();
  readonly #streams = new WaitingAttempts<WatchedAttempt>();
  readonly #wholes = new WaitingAttempts<WatchedAttempt>();
  readonly #suspicion = new Suspicion();

  /** Undefined when the target takes no further attempt of the key now. */
  tryBegin(nowMs: number, terms: AttemptTerms): WatchedAttempt | undefined {
    const { key, isStreamed, hasToServe = false, isGuaranteed = false } = terms;
    if (!hasToServe && this.#isClosed(key, nowMs)) return undefined;
    if (!isGuaranteed) {
      if (!hasToServe && !this.#standing.hasRoom(key, nowMs)) return undefined;
      if (!this.#limit.hasRoom(nowMs)) return undefined;
    }
    this.#limit.enter(key);
    const standing = this.#standing.begin(key, nowMs);
    const attempt = { isStreamed, beganMs: nowMs, standing, isAnswered: false };
    this.#waitingOf(attempt).add(attempt);
    return attempt;
  }

  /** The first event of a stream came, or a whole answer. */
  answered(attempt: WatchedAttempt, nowMs: number): readonly TargetChange[] {
    attempt.isAnswered = true;
    this.#waitingOf(attempt).answered(attempt, nowMs, nowMs - attempt.beganMs);
    this.#pause.answered(nowMs);
    this.#limit.succeeded(attempt.standing.key, nowMs);
    return this.#standing.answered(attempt.standing, nowMs);
  }

  ended(attempt: WatchedAttempt, end: AttemptEnd, moment: Moment): readonly TargetChange[] {
    const { nowMs } = moment;
    const { standing, isAnswered } = attempt;
    this.#waitingOf(attempt).ended(attempt);
    if (end === "left") this.#leftEarly(attempt, nowMs);
    else if (end !== "ok") this.#learn(attempt, end, nowMs);
    this.#limit.leave(standing.key);
    standing.all.slowStart?.leave();
    standing.own?.slowStart?.leave();
    if (end === "left" && !isAnswered) return [];
    const evidence = typeof end === "string" ? "life" : evidenceOf(end);
    if (evidence === "neither") return [];
    if (evidence === "life" || typeof end === "string") {
      return this.#standing.lived(standing, nowMs, end === "ok");
    }
    const change = this.#standing.failed(standing, end.kind, moment);
    if (change === undefined) return [];
    // Is it the target that is broken, or what the key sends?
    if (change.key !== undefined) this.#suspicion.raise();
    return [change];
  }

  /** False when one is under way. Whoever begins one must end it. */
  tryBeginProbe(): boolean {
    return this.#suspicion.tryBeginProbe();
  }

  /** `failure`: what the probe met; undefined: the target answered. */
  probeEnded(failure: UpstreamFailureDetails | undefined, moment: Moment): readonly TargetChange[] {
    const { nowMs, settings } = moment;
    if (failure === undefined || evidenceOf(failure) === "life") {
      this.#suspicion.cleared(nowMs + settings.longestMs);
      return this.#standing.probeAnswered(nowMs);
    }
    this.#suspicion.confirmed();
    const change = this.#standing.probeFailed(failure.kind, moment);
    if (failure.kind === "timed-out" || failure.kind === "connect-failed") this.#tellSilent();
    return change === undefined ? [] : [change];
  }

  /** How long a probe is waited for: as long as the target takes for its quicker kind of answer. */
  get probePatienceMs(): number {
    return Math.min(this.#streams.time.patienceMs, this.#wholes.time.patienceMs);
  }

  viewAt(nowMs: number, key: string): TargetView {
    const standing = this.#standing;
    const ejection = standing.ejectionFor(key, nowMs);
    return {
      isEjected: ejection.isEjected,
      ejectedForMs: ejection.leftMs(nowMs),
      because: ejection.because,
      pausedForMs: this.#pause.leftMs(nowMs),
      isStartingSlowly: standing.isStartingSlowly(key, nowMs),
      needsProbe: this.#needsProbe(ejection.isDue(nowMs), nowMs),
      failureShare: standing.failureShare(nowMs),
      firstEventMs: this.#streams.time.averageAt(nowMs),
      inFlight: this.#limit.inFlight,
      limit: this.#limit.limitAt(nowMs),
    };
  }

  #isClosed(key: string, nowMs: number): boolean {
    return this.#standing.isEjectedFor(key) || this.#pause.leftMs(nowMs) > 0;
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

  #leftEarly(attempt: WatchedAttempt, nowMs: number): void {
    if (attempt.isAnswered) return;
    this.#waitingOf(attempt).time.unanswered(nowMs, nowMs - attempt.beganMs);
  }

  /** What a failure teaches beside whether the target is broken. */
  #learn(
    { standing, isAnswered }: WatchedAttempt,
    failure: UpstreamFailureDetails,
    nowMs: number,
  ): void {
    const { kind, retryAfterMs } = failure;
    if (isOverload(failure, isAnswered)) this.#limit.overloaded(standing.key, nowMs);
    if (kind === "timed-out" && !isAnswered) this.#suspicion.raise();
    if (kind === "throttled") this.#pause.throttled(nowMs, retryAfterMs);
    else if (retryAfterMs !== undefined) this.#pause.asked(nowMs, retryAfterMs);
    else return;
    this.#standing.startSlowly(nowMs + this.#pause.leftMs(nowMs));
  }

  #tellSilent(): void {
    for (const { onSilent } of [...this.#streams, ...this.#wholes]) onSilent?.();
  }
}
