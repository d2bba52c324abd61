import type { Clock } from "../../domain/clock.ts";
import { describeError, type LogFields, type Logger } from "./logger.ts";

export interface OutageOptions {
  readonly logger: Logger;
  readonly clock: Clock;
}

/** What the log says of an outage. */
export interface OutageWords {
  readonly begins: string;
  /** Undefined: nobody tells its end. */
  readonly ends?: string | undefined;
  /** Default: `error`. */
  readonly level?: "warn";
}

/** Interval between log lines during an outage. */
const reminderMs = 60_000;

/** Something that fails for a time: the log gets a line per change and not per failure. */
export class Outage {
  readonly #options: OutageOptions;
  readonly #words: OutageWords;
  #beganAt: number | undefined;
  #loggedAt = 0;

  constructor(options: OutageOptions, words: OutageWords) {
    this.#options = options;
    this.#words = words;
  }

  /** Logs the first failure, then one per minute. */
  failed(error: unknown, fields: LogFields = {}): void {
    const isKnown = this.#beganAt !== undefined;
    if (isKnown && this.#options.clock.monotonic() - this.#loggedAt < reminderMs) return;
    this.failedAnew({ ...fields, cause: error === undefined ? undefined : describeError(error) });
  }

  /** Logs a failure in any case: the reason is a new one. */
  failedAnew(fields: LogFields): void {
    const { logger, clock } = this.#options;
    this.#loggedAt = clock.monotonic();
    this.#beganAt ??= this.#loggedAt;
    const { level = "error", begins } = this.#words;
    logger.log(level, begins, fields);
  }

  /** Logs the end, if there was an outage. */
  recovered(): void {
    if (this.#beganAt !== undefined) this.end();
  }

  /** Logs the end in any case. */
  end(fields: LogFields = {}): void {
    const { logger, clock } = this.#options;
    const lastedMs = this.#beganAt === undefined ? undefined : clock.monotonic() - this.#beganAt;
    this.#beganAt = undefined;
    const afterMs = lastedMs === undefined ? undefined : Math.round(lastedMs);
    const { ends } = this.#words;
    if (ends !== undefined) logger.log("info", ends, { ...fields, afterMs });
  }
}
