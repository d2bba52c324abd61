export const firstDelayMs = 100;
export const longestDelayMs = 10_000;
/** Whoever ran so long is believed to run. */
export const soundUptimeMs = 60_000;

/** How long to wait before a worker that ended is started again. */
export class BackOff {
  #nextMs = firstDelayMs;

  /** After a run of this length. */
  after(uptimeMs: number): number {
    if (uptimeMs >= soundUptimeMs) this.#nextMs = firstDelayMs;
    const delayMs = this.#nextMs;
    this.#nextMs = Math.min(longestDelayMs, delayMs * 2);
    return delayMs;
  }
}
