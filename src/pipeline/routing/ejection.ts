import type { EjectionSettings } from "../../domain/routing-settings.ts";
import { SecondsRing } from "./seconds-ring.ts";

/** What the end of an attempt tells of its target. */
export type Evidence = "life" | "failure" | "neither";

/** Seconds whose attempts make up the share of failures. */
const shareSeconds = 10;
/** Below this a share is chance. */
const leastForShare = 5;

export interface EjectionNotice {
  readonly forMs: number;
  /** In a row, without a healthy period as long as the ejection before. */
  readonly times: number;
  readonly because: string;
}

/** An attempt as the ejection of its target sees it. */
export interface ObservedAttempt {
  /** What began before the target was ejected or returned says nothing about it now. */
  period: number;
  /** It began when the time of the ejection was over, so it decides. */
  readonly isTrial: boolean;
}

/**
 * Whether a target is left alone: ejected when it keeps failing, half open when its time is over,
 * and back when an attempt that began then was answered. If that failed, it is ejected for longer.
 */
export class Ejection {
  readonly #attempts = new SecondsRing(shareSeconds);
  readonly #failures = new SecondsRing(shareSeconds);
  #failuresInRow = 0;
  #times = 0;
  #forMs = 0;
  /** Undefined: in service. */
  #endsMs: number | undefined;
  /** Back since a first event, and nothing has come to a good end since. */
  #isOnTrust = false;
  #returnedMs = Number.NEGATIVE_INFINITY;
  #period = 0;

  get isEjected(): boolean {
    return this.#endsMs !== undefined;
  }

  /** 0 for a target in service, and for one that is half open. */
  leftMs(nowMs: number): number {
    return this.#endsMs === undefined ? 0 : Math.max(0, this.#endsMs - nowMs);
  }

  isHalfOpen(nowMs: number): boolean {
    return this.#endsMs !== undefined && nowMs >= this.#endsMs;
  }

  /** From 0 to 1; 0 where there are too few attempts to tell. */
  failureShare(nowMs: number): number {
    const attempts = this.#attempts.sum(nowMs);
    return attempts < leastForShare ? 0 : this.#failures.sum(nowMs) / attempts;
  }

  observe(nowMs: number): ObservedAttempt {
    return { period: this.#period, isTrial: this.isHalfOpen(nowMs) };
  }

  /** The first event came. True when that returns the target to service. */
  answered(attempt: ObservedAttempt, nowMs: number): boolean {
    if (!this.#decides(attempt)) return false;
    this.#endsMs = undefined;
    this.#returnedMs = nowMs;
    this.#beginPeriod();
    this.#isOnTrust = true;
    attempt.period = this.#period;
    return true;
  }

  /** A failure; its kind is for the notice. What it returns: the target is ejected by it. */
  failed(
    attempt: ObservedAttempt,
    nowMs: number,
    about: { readonly kind: string; readonly settings: EjectionSettings },
  ): EjectionNotice | undefined {
    if (attempt.period !== this.#period) return undefined;
    this.#attempts.add(nowMs);
    this.#failures.add(nowMs);
    this.#failuresInRow += 1;
    const because = this.#reason(attempt, nowMs, about.settings);
    if (because === undefined) return undefined;
    return this.#eject(nowMs, about.settings, `${because}, at last: ${about.kind}`);
  }

  /** An attempt went well, or failed for reasons that are not the target's. */
  lived(attempt: ObservedAttempt, nowMs: number): void {
    if (attempt.period !== this.#period) return;
    this.#attempts.add(nowMs);
    this.#failuresInRow = 0;
    this.#isOnTrust = false;
  }

  #decides(attempt: ObservedAttempt): boolean {
    return this.#endsMs !== undefined && attempt.isTrial && attempt.period === this.#period;
  }

  #reason(attempt: ObservedAttempt, nowMs: number, settings: EjectionSettings): string | undefined {
    if (this.#endsMs !== undefined) {
      return attempt.isTrial ? "the attempt after its ejection failed" : undefined;
    }
    if (this.#isOnTrust) return "it failed again before anything went well";
    if (this.#failuresInRow >= settings.failures) {
      return `${this.#failuresInRow} failures in a row`;
    }
    const attempts = this.#attempts.sum(nowMs);
    const failures = this.#failures.sum(nowMs);
    const isTooMany =
      attempts >= settings.leastAttempts && failures * 100 >= settings.errorPercent * attempts;
    return isTooMany ? `${failures} of ${attempts} attempts in ten seconds failed` : undefined;
  }

  #eject(nowMs: number, settings: EjectionSettings, because: string): EjectionNotice {
    const wasHealthy = this.#endsMs === undefined && nowMs - this.#returnedMs >= this.#forMs;
    this.#times = wasHealthy ? 1 : this.#times + 1;
    const forMs = Math.min(settings.longestMs, settings.firstMs * 2 ** (this.#times - 1));
    this.#forMs = forMs;
    this.#endsMs = nowMs + forMs;
    this.#beginPeriod();
    this.#isOnTrust = false;
    return { forMs, times: this.#times, because };
  }

  #beginPeriod(): void {
    this.#period += 1;
    this.#failuresInRow = 0;
    this.#attempts.clear();
    this.#failures.clear();
  }
}
