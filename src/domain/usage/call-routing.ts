import type { UpstreamFailureKind } from "../errors/failure-kind.ts";

/** The routing of a call: the targets considered, and every attempt. */
export interface CallRouting {
  /** In the order to be tried. */
  readonly candidates: readonly CandidateNote[];
  readonly attempts: readonly AttemptNote[];
}

export interface CandidateNote {
  /** `-`: all targets of the model. */
  readonly target: string;
  /** Alias; differs from the caller's for a fallback. */
  readonly model: string;
  /** Why it has this position, such as `priority 1`, or why it was skipped. */
  readonly why: string;
}

/** Outcome of one attempt. */
export type AttemptOutcome =
  | UpstreamFailureKind
  | "answered"
  /** Another attempt answered first, or the caller left. */
  | "given-up";

export interface AttemptNote {
  readonly target: string;
  readonly model: string;
  /** Milliseconds since the call arrived. */
  readonly startMs: number;
  readonly durationMs: number;
  readonly outcome: AttemptOutcome;
  /** Whether the provider may bill an answer that nobody received. */
  readonly mayBeBilled: boolean;
  /** The decision after a failure, with its rule; undefined: there was none. */
  readonly decision?: string | undefined;
}
