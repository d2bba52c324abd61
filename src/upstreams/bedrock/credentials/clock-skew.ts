import type { Clock } from "../../../domain/clock.ts";

/** The provider refuses signatures that are five minutes off; a skew close to that is corrected. */
const toleranceMs = 4 * 60_000;

/** The provider's time: this machine's clock, corrected by the dates of refusals. */
export class ClockSkew {
  readonly #clock: Clock;
  #offsetMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  nowMs(): number {
    return this.#clock.now() + this.#offsetMs;
  }

  /**
   * Learns from the `date` of an answer to a request whose signature was refused. True when the
   * time it was signed with explains the refusal, so the request can be signed again and repeated.
   */
  explains(date: string | null, signedAtMs: number): boolean {
    const theirsMs = Date.parse(date ?? "");
    if (Number.isNaN(theirsMs)) return false;
    if (Math.abs(theirsMs - this.nowMs()) > toleranceMs) {
      this.#offsetMs = theirsMs - this.#clock.now();
      return true;
    }
    // Signed before another refusal corrected the clock.
    return Math.abs(theirsMs - signedAtMs) > toleranceMs;
  }
}
