import type { AttemptNote } from "../usage/call-routing.ts";
import type { ModelKind } from "../model.ts";
import type { CallSpanIds } from "./span-ids.ts";

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
