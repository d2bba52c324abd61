import type { Clock } from "../../domain/clock.ts";
import { describeError, type Logger } from "./logger.ts";

/** Interval between log lines during an outage. */
const reminderMs = 60_000;

/** Tracks whether something works, so that the log gets a line per change and not per failure. */
export class Outage {
  readonly #clock: Clock;
  #beganAt: number | undefined;
  #remindedAt = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True when this failure should be logged: the first one, then one per minute. */
  failed(): boolean {
    const now = this.#clock.monotonic();
    if (this.#beganAt !== undefined && now - this.#remindedAt < reminderMs) return false;
    this.#beganAt ??= now;
    this.#remindedAt = now;
    return true;
  }

  /** Duration of the outage; undefined if there was none. */
  recovered(): number | undefined {
    if (this.#beganAt === undefined) return undefined;
    const lastedMs = this.#clock.monotonic() - this.#beganAt;
    this.#beganAt = undefined;
    return lastedMs;
  }
}

export interface Fault {
  readonly error: unknown;
  readonly fields?: Readonly<Record<string, string | number>>;
}

export function logFault(logger: Logger, message: string, { error, fields }: Fault): void {
  logger.log("error", message, { ...fields, cause: describeError(error) });
}

/** Logs a recovery, if there was an outage. */
export function logRecovery(logger: Logger, outage: Outage, message: string): void {
  const lastedMs = outage.recovered();
  if (lastedMs !== undefined) logger.log("info", message, { afterMs: Math.round(lastedMs) });
}
