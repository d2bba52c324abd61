import type { UpstreamFailureDetails } from "../../domain/errors/upstream-failure.ts";
import { ConcurrencyLimit } from "./concurrency-limit.ts";
import { evidenceOf, isOverload } from "./failure-evidence.ts";
import { Suspicion } from "./suspicion.ts";
import { TargetPause } from "./target-pause.ts";
import {
  TargetStanding,
  type Moment,
  type StandingAttempt,
  type TargetChange,
} from "./target-standing.ts";
import type { TargetView } from "../target-view.ts";
import { WaitingAttempts } from "./waiting-attempts.ts";

/** How an attempt ended: well, because its caller no longer wanted it, or by a failure. */
export type ObservedEnd = "ok" | "left" | UpstreamFailureDetails;

/** What a probe found; `nothing` where it could not be made. */
export type ProbeResult = "answered" | "nothing" | UpstreamFailureDetails;

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

/** An outage has to last twenty times as long for a probe to be waited for. */
const probePartOfOutage = 1 / 20;

/** All that is remembered of one target, of bounded size. Callers name the time. */
export class TargetState {
  readonly #standing = new TargetStanding();
  readonly #limit = new ConcurrencyLimit();
  readonly #pause = new TargetPause();
  readonly #streams = new WaitingAttempts<WatchedAttempt>();
  readonly #wholes = new WaitingAttempts<WatchedAttempt>();
  readonly #suspicion = new Suspicion();
  /** A probe timed out, and nothing was answered since. */
  #isSilent = false;

  /** Undefined when the target takes no further attempt of the key now. */
  tryBegin(nowMs: number, terms: AttemptTerms): WatchedAttempt | undefined {
    const { key, isStreamed, hasToServe = false, isGuaranteed = false } = terms;
    if (!hasToServe && this.#isClosed(key, nowMs)) return undefined;
    if (!isGuaranteed) {
      if (!hasToServe && !this.#standing.hasRoom(key, nowMs)) return undefined;
      if (!this.#limit.hasRoom(key, nowMs)) return undefined;
    }
    this.#limit.enter(key);
    const standing = this.#standing.begin(key, nowMs);
    const attempt = { isStreamed, beganMs: nowMs, standing, isAnswered: false };
    this.#waitingOf(attempt).add(attempt);
    return attempt;
  }

  /** The first event of a stream came, or a whole answer. */
  answered(attempt: WatchedAttempt, nowMs: number): readonly TargetChange[] {
    const { key } = attempt.standing;
    attempt.isAnswered = true;
    this.#isSilent = false;
    this.#waitingOf(attempt).answered(attempt, nowMs);
    this.#pause.answered(key, nowMs);
    this.#limit.succeeded(key, nowMs);
    return this.#standing.answered(attempt.standing, nowMs);
  }

  ended(attempt: WatchedAttempt, end: ObservedEnd, moment: Moment): readonly TargetChange[] {
    const { nowMs } = moment;
    const { standing, isAnswered } = attempt;
    this.#waitingOf(attempt).ended(attempt);
    if (end === "left" && !isAnswered) {
      // Of a silent target it would teach that silence is usual.
      const { time } = this.#waitingOf(attempt);
      if (!this.#isSilent) time.unanswered(nowMs, nowMs - attempt.beganMs);
    } else if (typeof end !== "string") this.#learn(attempt, end, nowMs);
    this.#limit.leave(standing.key);
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

  /** False when one is under way. Whoever begins one must end it. */
  tryBeginProbe(): boolean {
    return this.#suspicion.tryBeginProbe();
  }

  probeEnded(result: ProbeResult, moment: Moment): readonly TargetChange[] {
    const { nowMs } = moment;
    const evidence = typeof result === "string" ? result : evidenceOf(result);
    if (typeof result !== "string" && result.kind === "throttled") {
      this.#pause.throttled("", nowMs, result.retryAfterMs);
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
   * How long the first event of a probe is waited for, milliseconds. The longer a target is out, the more time it gets: it may have become slower.
   */
  probePatienceMs(nowMs: number): number {
    // Whole answers take at least as long as their first event.
    const usualMs = Math.min(this.#streams.time.patienceMs, this.#wholes.time.patienceMs);
    return Math.max(usualMs, this.#standing.outForMs(nowMs) * probePartOfOutage);
  }

  /** When an attempt that began now would be overdue. */
  patienceMs({ isStreamed }: Pick<WatchedAttempt, "isStreamed">): number {
    return this.#waitingOf({ isStreamed }).time.patienceMs;
  }

  /** Runs something when the target is found to be silent, if the attempt is overdue by then. */
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
      inFlight: this.#limit.inFlight,
      limit: this.#limit.limitAt(nowMs),
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
    // Is it the target that is broken, or what the key sends?
    if (change.key !== undefined) this.#suspicion.raise();
    return [change];
  }

  /** What a failure teaches beside whether the target is broken. */
  #learn(
    { standing, isAnswered }: WatchedAttempt,
    failure: UpstreamFailureDetails,
    nowMs: number,
  ): void {
    const { kind, retryAfterMs } = failure;
    const { key } = standing;
    if (isOverload(failure, isAnswered)) this.#limit.overloaded(key, nowMs);
    if (kind === "timed-out" && !isAnswered) this.#suspicion.raise();
    if (kind === "throttled") {
      if (!this.#pause.throttled(key, nowMs, retryAfterMs)) return;
    } else if (retryAfterMs !== undefined) this.#pause.asked(nowMs, retryAfterMs);
    else return;
    this.#standing.startSlowly(nowMs + this.#pause.leftMs(key, nowMs));
  }

  #fellSilent(nowMs: number): void {
    this.#isSilent = true;
    for (const { onSilent } of [...this.#streams.overdue(nowMs), ...this.#wholes.overdue(nowMs)]) {
      onSilent?.();
    }
  }
}
