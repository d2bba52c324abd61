import type { UpstreamFailureKind } from "../errors/failure-kind.ts";

/** How a call found its way: the targets that were considered, and every attempt. */
export interface CallRouting {
  /** In the order in which they were to be tried. */
  readonly candidates: readonly CandidateNote[];
  readonly attempts: readonly AttemptNote[];
}

export interface CandidateNote {
  /** `-`: all targets of the model. */
  readonly target: string;
  /** Alias; another than the caller's for a fallback. */
  readonly model: string;
  /** Why it stands where it stands, such as `priority 1`, or why it was left out. */
  readonly why: string;
}

/** What became of one attempt. */
export type AttemptOutcome =
  | UpstreamFailureKind
  | "answered"
  /** Another attempt answered first, or the caller left. */
  | "given-up";

export interface AttemptNote {
  readonly target: string;
  readonly model: string;
  /** Since the call arrived, milliseconds. */
  readonly startMs: number;
  readonly durationMs: number;
  readonly outcome: AttemptOutcome;
  /** Whether the provider may bill work that nobody got. */
  readonly mayBeBilled: boolean;
  /** What was decided after it failed, and by which rule; undefined: nothing had to be. */
  readonly decision?: string | undefined;
}
