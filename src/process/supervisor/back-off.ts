export const firstDelayMs = 100;
export const longestDelayMs = 10_000;
/** A run of this length resets the delay. */
export const healthyUptimeMs = 60_000;

/** Delay before an ended worker is restarted. */
export class BackOff {
  #nextMs = firstDelayMs;

  /** `uptimeMs`: length of the run that ended. */
  after(uptimeMs: number): number {
    if (uptimeMs >= healthyUptimeMs) this.#nextMs = firstDelayMs;
    const delayMs = this.#nextMs;
    this.#nextMs = Math.min(longestDelayMs, delayMs * 2);
    return delayMs;
  }
}
