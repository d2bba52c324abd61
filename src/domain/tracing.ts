import type { RequestTrace } from "./request-trace.ts";
import type { AttemptNote } from "./usage/call-routing.ts";
import type { ModelKind } from "./model.ts";

/** The identity of a call in a trace. */
export interface CallSpanIds {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** The caller's span; undefined if the call begins the trace. */
  readonly parentSpanId: string | undefined;
  /** Whether the call is in the sampled share of traces. */
  readonly isSampled: boolean;
}

export interface SamplingSettings {
  /** Share of the traces that are kept, from 0 to 1. */
  readonly sampleRatio: number;
  /** Whether the caller's sampled flag decides. */
  readonly trustsCaller: boolean;
}

const randomDigits = 13;
const randomSpace = 16 ** randomDigits;

/**
 * The ids of a call, made from its request id. The share is chosen by the low 52 of the 56 random
 * bits of the trace id, so that every service with the same ratio keeps the same traces.
 */
export function spanIdsOf(
  requestId: string,
  trace: RequestTrace | undefined,
  { sampleRatio, trustsCaller }: SamplingSettings,
): CallSpanIds {
  const sent = trace?.traceparent;
  const traceId = sent?.slice(3, 35) ?? requestId.slice(-32);
  const parentSpanId = sent?.slice(36, 52);
  const isInShare =
    Number.parseInt(traceId.slice(-randomDigits), 16) >= (1 - sampleRatio) * randomSpace;
  const isFlagged = sent !== undefined && (Number.parseInt(sent.slice(53, 55), 16) & 1) === 1;
  const isSampled = trustsCaller && sent !== undefined ? isFlagged : isInShare;
  return { traceId, parentSpanId, isSampled };
}

/** The id of a span, made of the request id and its number, so that nothing has to be kept. */
export function spanIdOf(requestId: string, number: number): string {
  return requestId.slice(-14) + (number & 0xff).toString(16).padStart(2, "0");
}

/** Numbers of the spans of a call; attempts follow from `attempts`. */
export const spanNumbers = { call: 0, admission: 1, queue: 2, attempts: 16 } as const;

/** The `traceparent` header of an attempt, counted from 0. */
export function traceparentOf(requestId: string, ids: CallSpanIds, attempt: number): string {
  const spanId = spanIdOf(requestId, spanNumbers.attempts + attempt);
  return `00-${ids.traceId}-${spanId}-${ids.isSampled ? "01" : "00"}`;
}

/** What a trace shows of a call beside its ledger row; times are milliseconds since its arrival. */
export interface CallTiming {
  readonly ids: CallSpanIds;
  /** `tracestate` of the caller. */
  readonly tracestate: string | undefined;
  readonly kind: ModelKind;
  /** The request was parsed, and admission began. */
  readonly parsedMs: number;
  /** Undefined if the call was not admitted. */
  readonly admittedMs: number | undefined;
  /** The call began to wait for a place; undefined if it did not. */
  readonly queuedMs: number | undefined;
  readonly attempts: readonly AttemptTiming[];
}

export interface AttemptTiming extends AttemptNote {
  /** The upstream's own identifier of the model. */
  readonly upstreamModel: string;
  /** Name of the provider in the conventions of OpenTelemetry. */
  readonly provider: string | undefined;
  /** Address of the request; undefined if none was made. */
  readonly url: string | undefined;
  /** The answer, or its first event, was decoded. */
  readonly firstEventMs: number | undefined;
  /** HTTP status of a failure. */
  readonly status: number | undefined;
}
