/** What is known each time the rate is set anew. */
export interface DelaySample {
  /** Monotonic milliseconds. */
  readonly now: number;
  /** How long the event loop keeps everybody waiting. */
  readonly delayMs: number;
  readonly targetMs: number;
}

export interface ArrivingCall {
  /** Monotonic milliseconds. */
  readonly now: number;
  /** Others leave half a burst to those that are. */
  readonly isImportant: boolean;
  /** Whether the loop is far behind as it is. */
  readonly isLate: boolean;
}

/** Change of the rate's logarithm at a delay of twice the target, against one at the target. */
const proportionalGain = 0.2;
/** The same, for each second that it lasts. */
const integralGainPerSecond = 0.2;
/** In targets. One bad moment must not refuse everybody. */
const largestError = 2;
/** How fast the rate grows while the loop is idle and calls are refused all the same. */
const idleGainPerSecond = 1;
/** A loop that stood still for long tells no more than one that stood still for this long. */
const longestStepMs = 250;
/** Over which time the rate of admissions is averaged. */
const averagedMs = 1_000;
/** So many calls a second always get through: they tell when the load is gone. */
const smallestRate = 10;
/** What may be admitted at once, as time at the full rate. */
const burstMs = 100;
/** Without a refusal for so long there is nothing to hold back any more. */
const calmMs = 1_000;
/** Less important calls are admitted only while at least this part of a burst is left. */
const keptForOthers = 0.5;

/**
 * How many calls a second are admitted so that the delay of the event loop stays near its target: a
 * proportional-integral controller, which begins at what was admitted when the delay began. A rate
 * and not a share: a loop that falls behind finds many calls at once, and a share of them would
 * make it fall behind again.
 */
export class AdmissionRate {
  /** Undefined while everybody is admitted. */
  #rate: number | undefined;
  #tokens = 0;
  #filledAt = 0;
  #updatedAt = 0;
  #refusedAt = 0;
  #error = 0;
  /** Since the rate was set before. */
  #admitted = 0;
  #averageRate = 0;

  /** Whether as little is admitted as can be, so that nothing is left to be held back. */
  get isExhausted(): boolean {
    return this.#rate === smallestRate;
  }

  /** Counts a call that goes on whatever the rate. */
  count(): void {
    this.#admitted += 1;
  }

  /** True when a call may go on. */
  admits(call: ArrivingCall): boolean {
    if (this.#rate !== undefined && (call.isLate || !this.#takeToken(this.#rate, call))) {
      this.#refusedAt = call.now;
      return false;
    }
    this.count();
    return true;
  }

  /** To be called many times a second. */
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
    // Nobody asks for more: that the loop is idle says nothing of what it could do.
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
