import type { Model } from "../../domain/model.ts";
import type { CallTiming } from "../../domain/tracing.ts";
import type { Call } from "../../snapshot/call.ts";
import type { CallPath } from "../call-path.ts";

interface CallTimes {
  /** Monotonic milliseconds, as `admittedAt`. */
  readonly parsedAt: number;
  readonly admittedAt: number | undefined;
}

/** What a trace shows of a call; undefined where no traces are sent. */
export function timingOf(
  { call, model }: { readonly call: Call; readonly model: Model },
  path: CallPath,
  { parsedAt, admittedAt }: CallTimes,
): CallTiming | undefined {
  const { origin, receivedAt } = call;
  if (origin?.spans === undefined) return undefined;
  return {
    ids: origin.spans,
    tracestate: origin.trace?.tracestate,
    kind: model.kind,
    parsedMs: parsedAt - receivedAt,
    admittedMs: admittedAt === undefined ? undefined : admittedAt - receivedAt,
    queuedMs: path.queuedMs,
    attempts: path.timings,
  };
}
