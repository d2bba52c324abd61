import type { RequestTrace } from "../request-trace.ts";

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

/**
 * The id of a span of a call: 56 random bits of the request id and the number of the span, so that
 * nothing has to be kept during the call.
 */
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
