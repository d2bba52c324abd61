/** The input of one update of the rate. */
export interface DelaySample {
  /** Monotonic milliseconds. */
  readonly now: number;
  /** The delay of the event loop. */
  readonly delayMs: number;
  readonly targetMs: number;
}

export interface ArrivingCall {
  /** Monotonic milliseconds. */
  readonly now: number;
  /** Less important calls leave half a burst to important ones. */
  readonly isImportant: boolean;
  /** Whether the loop is already far behind. */
  readonly isLate: boolean;
}

/** Change of the rate's logarithm at a delay of twice the target, relative to one at the target. */
const proportionalGain = 0.2;
/** The same, for each second of such a delay. */
const integralGainPerSecond = 0.2;
/** In targets. One long delay must not refuse all calls. */
const largestError = 2;
/** How fast the rate grows while the loop is idle but calls are refused. */
const idleGainPerSecond = 1;
/** A longer pause of the loop counts as this long. */
const longestStepMs = 250;
/** The time over which the rate of admissions is averaged. */
const averagedMs = 1_000;
/** This many calls a second are always admitted, to detect the end of the load. */
const smallestRate = 10;
/** The burst that may be admitted at once, as time at the full rate. */
const burstMs = 100;
/** Without a refusal for this long the rate is no longer limited. */
const calmMs = 1_000;
/** Less important calls are admitted only while at least this part of a burst is left. */
const keptForOthers = 0.5;

/**
 * Limits calls per second so that the delay of the event loop stays near its target: a
 * proportional-integral controller that starts at the rate at which the delay began. It limits a
 * rate, not a share, because a loop that is behind receives many calls at once, and a share of them
 * would delay it again.
 */
export class AdmissionRate {
  /** Undefined while all calls are admitted. */
  #rate: number | undefined;
  #tokens = 0;
  #filledAt = 0;
  #updatedAt = 0;
  #refusedAt = 0;
  #error = 0;
  /** Calls since the last update. */
  #admitted = 0;
  #averageRate = 0;

  /** Whether the rate is at its minimum. */
  get isExhausted(): boolean {
    return this.#rate === smallestRate;
  }

  /** Counts a call that is admitted without the limit. */
  count(): void {
    this.#admitted += 1;
  }

  /** Whether a call is admitted. */
  admits(call: ArrivingCall): boolean {
    if (this.#rate !== undefined && (call.isLate || !this.#takeToken(this.#rate, call))) {
      this.#refusedAt = call.now;
      return false;
    }
    this.count();
    return true;
  }

  /** Call many times a second. */
  update({ now, delayMs, targetMs }: DelaySample): void {
    const sinceMs = Math.max(1, now - this.#updatedAt);
    this.#updatedAt = now;
    const weight = Math.min(1, sinceMs / averagedMs);
    this.#averageRate += weight * ((this.#admitted / sinceMs) * 1_000 - this.#averageRate);
    this.#admitted = 0;
    const targets = delayMs / targetMs;
    this.#error = Math.min(largestError, targets - 1);
    if (this.#rate === undefined) {
      if (targets > 1) this.#limit(now);
      return;
    }
    if (targets < 1 && now - this.#refusedAt >= calmMs) this.#rate = undefined;
    else this.#rate = Math.max(smallestRate, this.#rate * this.#growth(targets, sinceMs, now));
  }

  #limit(now: number): void {
    this.#rate = Math.max(smallestRate, this.#averageRate);
    this.#tokens = 0;
    this.#filledAt = now;
    this.#refusedAt = now;
  }

  #growth(targets: number, sinceMs: number, now: number): number {
    // Without refusals, an idle loop does not show that it could do more.
    if (targets < 1 && this.#refusedAt < now - sinceMs) return 1;
    const seconds = Math.min(sinceMs, longestStepMs) / 1_000;
    const idle = Math.max(0, 1 - 2 * targets);
    return Math.exp(seconds * (idleGainPerSecond * idle - integralGainPerSecond * this.#error));
  }

  #takeToken(rate: number, { now, isImportant }: ArrivingCall): boolean {
    const perMs = (rate * Math.exp(-proportionalGain * this.#error)) / 1_000;
    const most = Math.max(1, perMs * burstMs);
    this.#tokens = Math.min(most, this.#tokens + perMs * (now - this.#filledAt));
    this.#filledAt = now;
    if (this.#tokens < (isImportant ? 1 : Math.max(1, most * keptForOthers))) return false;
    this.#tokens -= 1;
    return true;
  }
}
