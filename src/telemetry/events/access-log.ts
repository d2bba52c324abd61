import type { RefusalExplanation } from "../../domain/errors/refusal.ts";
import type { HandledRequest } from "../../domain/handled-request.ts";
import { readTrace, type RequestTrace } from "../../domain/request-trace.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import type { Logger } from "../log/logger.ts";

/** The HTTP request that a call came with. */
export interface CallOrigin {
  readonly method: string;
  readonly route: string;
  readonly trace: RequestTrace | undefined;
}

/** One line for each request: at the end of a call, or when any other request is answered. */
export class AccessLog {
  readonly #logger: Logger;
  readonly #level: "info" | "debug";

  /** `isOn`: lines about the API have level `info`; all others have `debug`. */
  constructor(logger: Logger, isOn: boolean) {
    this.#logger = logger;
    this.#level = isOn ? "info" : "debug";
  }

  request(request: HandledRequest, explanation: RefusalExplanation | undefined): void {
    const { id, method, route, status, error, durationMs, access } = request;
    const isListed = access !== undefined && !access.isRepeat;
    const level = isListed ? this.#level : "debug";
    if (!this.#logger.writes(level)) return;
    const trace = access && readTrace(access.headers);
    this.#logger.log(level, "request", {
      id,
      method,
      route,
      status,
      code: error?.code ?? undefined,
      rule: explanation?.rule,
      application: explanation?.application,
      keyId: access?.keyId,
      durationMs: Math.round(durationMs),
      callerRequestId: trace?.callerRequestId,
      traceparent: trace?.traceparent,
    });
  }

  call(record: UsageRecord, origin: CallOrigin | undefined): void {
    if (!this.#logger.writes(this.#level)) return;
    const { firstEventMs } = record;
    const trace = origin?.trace;
    this.#logger.log(this.#level, "call", {
      id: record.id,
      method: origin?.method,
      route: origin?.route,
      status: record.status,
      code: record.code,
      outcome: record.outcome,
      application: record.application,
      keyId: record.keyId,
      model: record.model,
      target: record.target,
      capacityClass: record.capacityClass,
      inputTokens: record.inputTokens,
      outputTokens: record.outputTokens,
      attempts: record.attempts,
      isStreamed: record.isStreamed,
      firstEventMs: firstEventMs === undefined ? undefined : Math.round(firstEventMs),
      durationMs: Math.round(record.durationMs),
      callerRequestId: trace?.callerRequestId,
      traceparent: trace?.traceparent,
    });
  }
}
