/**
 * A delayed event loop sees silence everywhere. By the second look, late answers have been read.
 */
export const secondLookMs = 50;
/** A target that answered a probe is not suspected again for this time. */
const quietMs = 5_000;

/**
 * Whether a target in service should be probed: an attempt timed out, several are overdue, or the
 * calls of one key keep failing. One probe runs at a time.
 */
export class Suspicion {
  #isRaised = false;
  #silentSinceMs: number | undefined;
  #quietUntilMs = Number.NEGATIVE_INFINITY;
  #isProbing = false;

  get isProbing(): boolean {
    return this.#isProbing;
  }

  raise(): void {
    this.#isRaised = true;
  }

  isWarranted(isSilent: boolean, nowMs: number): boolean {
    if (this.#isProbing || nowMs < this.#quietUntilMs) return false;
    if (this.#isRaised) return true;
    if (isSilent) this.#silentSinceMs ??= nowMs;
    else this.#silentSinceMs = undefined;
    return this.#silentSinceMs !== undefined && nowMs - this.#silentSinceMs >= secondLookMs;
  }

  /** False while a probe is running. */
  tryBeginProbe(): boolean {
    if (this.#isProbing) return false;
    this.#isProbing = true;
    return true;
  }

  /** The target answered the probe. */
  cleared(nowMs: number): void {
    this.ended();
    this.#quietUntilMs = nowMs + quietMs;
  }

  /** The probe failed or was inconclusive. */
  ended(): void {
    this.#isProbing = false;
    this.#isRaised = false;
    this.#silentSinceMs = undefined;
  }
}
