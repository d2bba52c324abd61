import type { UpstreamFailureKind } from "../errors/failure-kind.ts";
import { isObject } from "../json-object.ts";

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

/**
 * What served a call that had a choice among targets of one priority: the target of its session
 * (`kept`), or another one, and why. `none`: the call was of no session.
 */
export type AffinityResult =
  | "kept"
  /** It was out, or its provider refused calls. */
  | "out"
  /** It had more calls in flight than its share. */
  | "load"
  /** Another one wrote the thoughts of the conversation. */
  | "thoughts"
  /** It had no place. */
  | "busy"
  /** An attempt at it failed, or a hedge elsewhere answered first. */
  | "failed"
  | "none";

/** Limits on the attempts and candidates that are stored with a call. */
const keptAttempts = 10;
const keptCandidates = 64;
const longestText = 200;

/** Bounds the routing stored with a call. The last attempt is kept: it shows how the call ended. */
export function keptRouting({ candidates, attempts }: CallRouting): CallRouting {
  const kept =
    attempts.length > keptAttempts
      ? [...attempts.slice(0, keptAttempts - 1), ...attempts.slice(-1)]
      : attempts;
  return {
    candidates: candidates.slice(0, keptCandidates).map(keptCandidate),
    attempts: kept.map(keptAttempt),
  };
}

/** A routing as it was stored; undefined for anything else. */
export function readRouting(value: unknown): CallRouting | undefined {
  return isRouting(value) ? value : undefined;
}

function isRouting(value: unknown): value is CallRouting {
  return isObject(value) && Array.isArray(value["candidates"]) && Array.isArray(value["attempts"]);
}

function keptCandidate({ target, model, why }: CandidateNote): CandidateNote {
  return { target: short(target), model: short(model), why: short(why) };
}

function keptAttempt(attempt: AttemptNote): AttemptNote {
  return {
    target: short(attempt.target),
    model: short(attempt.model),
    startMs: tenths(attempt.startMs),
    durationMs: tenths(attempt.durationMs),
    outcome: attempt.outcome,
    mayBeBilled: attempt.mayBeBilled,
    ...(attempt.decision !== undefined && { decision: short(attempt.decision) }),
  };
}

function short(text: string): string {
  return text.length > longestText ? `${text.slice(0, longestText - 1)}…` : text;
}

function tenths(milliseconds: number): number {
  return Math.round(milliseconds * 10) / 10;
}
