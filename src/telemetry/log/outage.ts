import type { Clock } from "../../domain/clock.ts";

/** While something is out of order, the log hears of it this often, not at every try. */
const reminderMs = 60_000;

/** Follows something that works or does not, so that the log has a line for each change of it. */
export class Outage {
  readonly #clock: Clock;
  #beganAt: number | undefined;
  #remindedAt = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True when this failure is worth a line: the first, and one a minute. */
  failed(): boolean {
    const now = this.#clock.monotonic();
    if (this.#beganAt !== undefined && now - this.#remindedAt < reminderMs) return false;
    this.#beganAt ??= now;
    this.#remindedAt = now;
    return true;
  }

  /** How long it was out of order; undefined when it was not. */
  recovered(): number | undefined {
    if (this.#beganAt === undefined) return undefined;
    const lastedMs = this.#clock.monotonic() - this.#beganAt;
    this.#beganAt = undefined;
    return lastedMs;
  }
}
