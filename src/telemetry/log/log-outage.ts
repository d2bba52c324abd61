import type { Logger } from "./logger.ts";
import type { Outage } from "./outage.ts";
import { describeError } from "./redact.ts";

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
