import type { RefusalExplanation } from "../../domain/errors/refusal.ts";
import type { HandledRequest } from "../../domain/handled-request.ts";
import { readTrace, type RequestTrace } from "../../domain/request-trace.ts";
import { usdOfNano } from "../../domain/money/usd.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import type { Logger } from "../log/logger.ts";

/** The HTTP request that a call came with. */
export interface CallOrigin {
  readonly method: string;
  readonly route: string;
  readonly trace: RequestTrace | undefined;
}

export type AccessLog = ReturnType<typeof createAccessLog>;

/**
 * One line for each request: at the end of a call, or when any other request is answered.
 * `isOn`: lines about the API have level `info`; all others have `debug`.
 */
export function createAccessLog(logger: Logger, isOn: boolean) {
  const ownLevel = isOn ? "info" : "debug";
  return {
    request(request: HandledRequest, explanation: RefusalExplanation | undefined): void {
      const { access, error } = request;
      const isListed = access !== undefined && !access.isRepeat;
      const level = isListed ? ownLevel : "debug";
      if (!logger.writes(level)) return;
      const trace = access && readTrace(access.headers);
      logger.log(level, "request", {
        id: request.id,
        method: request.method,
        route: request.route,
        status: request.status,
        code: error?.code ?? undefined,
        rule: explanation?.rule,
        application: explanation?.application,
        keyId: access?.keyId,
        durationMs: Math.round(request.durationMs),
        callerRequestId: trace?.callerRequestId,
        traceparent: trace?.traceparent,
      });
    },

    call(record: UsageRecord, origin: CallOrigin | undefined): void {
      if (!logger.writes(ownLevel)) return;
      const { firstEventMs } = record;
      const trace = origin?.trace;
      logger.log(ownLevel, "call", {
        id: record.id,
        method: origin?.method,
        route: origin?.route,
        status: record.status,
        code: record.code,
        outcome: record.outcome,
        application: record.application,
        keyId: record.keyId,
        model: record.model,
        dialect: record.dialect,
        target: record.target,
        capacityClass: record.capacityClass,
        inputTokens: record.inputTokens,
        outputTokens: record.outputTokens,
        costUsd: record.costNano === undefined ? undefined : usdOfNano(record.costNano),
        attempts: record.attempts,
        isStreamed: record.isStreamed,
        firstEventMs: firstEventMs === undefined ? undefined : Math.round(firstEventMs),
        durationMs: Math.round(record.durationMs),
        callerRequestId: trace?.callerRequestId,
        traceparent: trace?.traceparent,
      });
    },
  };
}
