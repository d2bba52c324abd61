/** What is known when the share is set anew. */
export interface DelaySample {
  /** How long the event loop keeps everybody waiting. */
  readonly delayMs: number;
  readonly targetMs: number;
  /** Since the share was set before. */
  readonly sinceMs: number;
}

/** Some calls always get through: they tell when the load is gone. */
export const largestShare = 0.98;
/** Change of the share at a delay of twice the target, against one at the target. */
const proportionalGain = 0.2;
/** The same, for each second that it lasts. */
const integralGainPerSecond = 0.5;
/** In targets. One bad moment must not refuse everybody. */
const largestError = 2;
/** A loop that stood still for long tells no more than one that stood still for this long. */
const longestStepMs = 250;

/**
 * Which share of the calls is refused so that the delay of the event loop stays near its target: a
 * proportional-integral controller. A switch would let in too many and too few in turn. The
 * integral alone takes it from the largest share to none within two seconds of an idle loop.
 */
export class OverloadControl {
  #integral = 0;
  #share = 0;

  /** From 0 to `largestShare`. */
  get share(): number {
    return this.#share;
  }

  update({ delayMs, targetMs, sinceMs }: DelaySample): void {
    const error = Math.min(largestError, delayMs / targetMs - 1);
    const seconds = Math.min(sinceMs, longestStepMs) / 1_000;
    this.#integral = clamp(this.#integral + integralGainPerSecond * error * seconds);
    this.#share = clamp(this.#integral + proportionalGain * error);
  }
}

function clamp(share: number): number {
  return Math.min(largestShare, Math.max(0, share));
}
