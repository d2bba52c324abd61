import { traceparentOf } from "../../domain/tracing/span-ids.ts";
import type { Call } from "../../snapshot/call.ts";
import type { RunningAttempt } from "./running-attempt.ts";

export interface AttemptSpan {
  readonly traceparent: string;
  /** Called with the address of each request. */
  readonly onUrl: (url: string) => void;
}

/** The span of an attempt; undefined where no traces are sent. */
export function spanOf({ id, origin }: Call, attempt: RunningAttempt): AttemptSpan | undefined {
  const spans = origin?.spans;
  if (spans === undefined) return undefined;
  const onUrl = (url: string): void => attempt.sentTo(url);
  return { traceparent: traceparentOf(id, spans, attempt.number), onUrl };
}
