import type { GatewayError } from "../domain/gateway-error.ts";
import type { UpstreamFailure } from "../domain/upstream-failure.ts";
import type { UsageRecord } from "../domain/usage.ts";
import type { Logger } from "./logger.ts";
import type { Metrics } from "./metrics.ts";
import { describeError } from "./redact.ts";

export interface HandledRequestEvent {
  readonly id: string;
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly durationMs: number;
  readonly error: GatewayError | undefined;
}

/**
 * One function for each thing that happens and that operators want to know: log line and metrics
 * together. Fields are picked by name, so that nothing else can get into a log.
 */
export class TelemetryEvents {
  readonly #logger: Logger;
  readonly #metrics: Metrics;

  constructor(logger: Logger, metrics: Metrics) {
    this.#logger = logger;
    this.#metrics = metrics;
  }

  requestHandled(event: HandledRequestEvent): void {
    this.#metrics.requestHandled(event.route, event.status);
    const { id, method, route, status, error } = event;
    if (error?.row.code === "internal_error") {
      const cause = describeError(error.cause);
      this.#logger.log("error", "internal error", { id, method, route, cause });
      return;
    }
    const code = error?.code ?? undefined;
    const durationMs = Math.round(event.durationMs);
    this.#logger.log("debug", "request", { id, method, route, status, code, durationMs });
  }

  callEnded(record: UsageRecord): void {
    this.#metrics.callEnded(record);
    const { id, application, keyId, model, target, outcome, status, code } = record;
    const { inputTokens, outputTokens, attempts } = record;
    const durationMs = Math.round(record.durationMs);
    const subject = { id, application, keyId, model, target, outcome, status, code };
    const counts = { inputTokens, outputTokens, attempts, durationMs };
    this.#logger.log("debug", "call", { ...subject, ...counts });
  }

  attemptFailed(callId: string, targetId: string, failure: UpstreamFailure): void {
    const upstream = targetId.slice(0, targetId.indexOf("/"));
    const { kind, status, message } = failure.details;
    this.#metrics.attemptFailed(upstream, kind);
    // The operator's own faults deserve attention; the provider's weather does not.
    const isOperators = kind === "bad-credential" || kind === "unknown-model";
    const level = isOperators ? "error" : "warn";
    const fields = { id: callId, target: targetId, kind, status, message };
    this.#logger.log(level, "attempt failed", fields);
  }

  settleFailed(callId: string, error: unknown): void {
    const cause = describeError(error);
    this.#logger.log("error", "a reservation could not be settled", { id: callId, cause });
  }

  ledgerWriteFailed(rows: number, error: unknown): void {
    this.#metrics.ledgerWriteFailed();
    const cause = describeError(error);
    this.#logger.log("error", "usage could not be stored; trying again", { rows, cause });
  }

  configAccepted(name: string): void {
    this.#metrics.configReloaded("accepted");
    this.#logger.log("info", "configuration reloaded", { name });
  }

  configRefused(problems: string): void {
    this.#metrics.configReloaded("refused");
    this.#logger.log("error", "configuration refused, the running one stays", { problems });
  }

  configNotice(notice: string): void {
    this.#logger.log("warn", "configuration", { notice });
  }

  keysReloadFailed(error: unknown): void {
    const cause = describeError(error);
    this.#logger.log("error", "keys could not be read; known keys keep working", { cause });
  }

  started(addresses: { data: string; admin: string }): void {
    this.#logger.log("info", "listening", addresses);
  }

  draining(openRequests: number): void {
    this.#logger.log("info", "shutting down: open requests may finish", { openRequests });
  }

  stopped(): void {
    this.#logger.log("info", "stopped");
  }

  unhandled(error: unknown): void {
    this.#logger.log("error", "unhandled failure", { cause: describeError(error) });
  }
}
