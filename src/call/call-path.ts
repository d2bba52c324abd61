import type { GatewayError } from "../domain/errors/gateway-error.ts";
import { UpstreamFailure, type UpstreamFailureDetails } from "../domain/errors/upstream-failure.ts";
import type {
  AffinityResult,
  AttemptNote,
  CallRouting,
  CandidateNote,
} from "../domain/usage/call-routing.ts";
import type { AttemptTiming, CallTiming } from "../domain/tracing.ts";
import type { CallOutcome } from "../domain/usage/usage.ts";
import { isLoaded } from "../routing/affinity.ts";
import type { Candidate } from "../routing/candidates.ts";
import type { Model } from "../domain/model.ts";
import type { Call } from "../snapshot/call.ts";

/** What the path of a call keeps of an attempt. */
export interface NotedAttempt {
  readonly candidate: Candidate;
  readonly note: AttemptNote;
  readonly timing: AttemptTiming;
  readonly ageMs: number;
  /** Records the end; the place is kept until `release`. */
  conclude(end: AttemptEnd): void;
  release(tokens: number): void;
}

/** How an attempt ended: with its answer, abandoned, or with a failure. */
export type AttemptEnd = "answered" | "given-up" | UpstreamFailureDetails;

export interface CallEnd {
  readonly outcome: CallOutcome;
  readonly status: number;
  readonly code?: string | undefined;
  readonly error?: GatewayError;
}

/** How the attempt that serves a call ends with it. */
export function attemptEndOf(outcome: CallOutcome, error: GatewayError | undefined): AttemptEnd {
  if (outcome === "completed") return "answered";
  return error?.cause instanceof UpstreamFailure ? error.cause.details : "given-up";
}

/** Limit on notes of skipped candidates; a queued call makes many. */
const mostSkipped = 16;

/** The routing of one call: candidates, attempts, and the attempt that serves it. */
export class CallPath {
  #candidates: readonly Candidate[] = [];
  #leftOut: readonly CandidateNote[] = [];
  #skipped: Map<string, CandidateNote> | undefined;
  readonly #attempts: NotedAttempt[] = [];
  #serving: NotedAttempt | undefined;
  #isHedged = false;
  #queuedMs: number | undefined;

  /** The targets that may serve, in the order to be tried, and those left out. */
  considered(candidates: readonly Candidate[], leftOut: readonly CandidateNote[]): void {
    this.#candidates = candidates;
    this.#leftOut = leftOut;
  }

  /** No attempt could begin at the candidate. */
  skipped({ target, model }: Candidate, why: string): void {
    this.#skipped ??= new Map();
    if (this.#skipped.size >= mostSkipped) return;
    const note = { target: target.id, model: model.alias, why: `skipped: ${why}` };
    this.#skipped.set(`${target.id} ${why}`, note);
  }

  began(attempt: NotedAttempt): void {
    this.#attempts.push(attempt);
  }

  /** The attempt whose answer the caller gets; it ends with the call. */
  isServedBy(attempt: NotedAttempt): void {
    this.#serving = attempt;
  }

  get serving(): NotedAttempt | undefined {
    return this.#serving;
  }

  get attempts(): number {
    return this.#attempts.length;
  }

  /** The serving attempt, else the last one. */
  get last(): NotedAttempt | undefined {
    return this.#serving ?? this.#attempts.at(-1);
  }

  /** Undefined for the usual case: one target, one attempt, answered. */
  routing(outcome: CallOutcome): CallRouting | undefined {
    const candidates = this.#candidates;
    const isAlone = candidates.length + this.#leftOut.length < 2 && this.attempts < 2;
    if (candidates.length === 0 || (isAlone && outcome === "completed")) return undefined;
    return {
      candidates: [...candidates.map(noteOf), ...this.#leftOut, ...(this.#skipped?.values() ?? [])],
      attempts: this.notes,
    };
  }

  /** Undefined without an answer, or without a choice among targets of the first priority. */
  get affinity(): AffinityResult | undefined {
    const [first, second] = this.#candidates;
    const served = this.#serving?.candidate.target.id;
    if (first === undefined || second === undefined || served === undefined) return undefined;
    const isPeer = ({ model, target }: Candidate): boolean =>
      model === first.model && target.priority === first.target.priority;
    // A rank of the second one alone: a pool of the key's units comes before all sessions.
    if (first.rank === undefined) {
      return isPeer(second) && second.rank === undefined ? "none" : undefined;
    }
    const own = this.#candidates.find((each) => each.rank?.rank === 1 && isPeer(each));
    if (own?.rank === undefined) return undefined;
    if (own.target.id === served) return "kept";
    if (!own.isReady) return "out";
    if (isLoaded(own.rank)) return "load";
    if (own !== first) return "thoughts";
    const isTried = this.#attempts.some(({ candidate }) => candidate.target.id === own.target.id);
    return isTried ? "failed" : "busy";
  }

  /** Every attempt so far. */
  get notes(): readonly AttemptNote[] {
    return this.#attempts.map(({ note }) => note);
  }

  /** Every attempt so far, as a trace shows it. */
  get timings(): readonly AttemptTiming[] {
    return this.#attempts.map(({ timing }) => timing);
  }

  /** The call waits for a place, this long after its arrival. */
  waits(queuedMs: number): void {
    this.#queuedMs = queuedMs;
  }

  get queuedMs(): number | undefined {
    return this.#queuedMs;
  }

  /** The call was hedged, so the provider may bill it twice. */
  hedged(): void {
    this.#isHedged = true;
  }

  /** Whether the provider may bill an answer that nobody received. */
  get mayBeBilledTwice(): boolean {
    const { last } = this;
    return (
      this.#isHedged ||
      this.#attempts.some((attempt) => attempt !== last && attempt.note.mayBeBilled)
    );
  }
}

function noteOf({ target, model, why }: Candidate): CandidateNote {
  return { target: target.id, model: model.alias, why };
}

/** What is told of a call beside its row. */
export interface AboutCall extends Pick<Call, "origin">, Pick<CallPath, "affinity"> {
  /** Set for a failed call. */
  readonly error: GatewayError | undefined;
  readonly attempts: readonly AttemptNote[];
  /** For the trace; undefined where no traces are sent. */
  readonly timing: CallTiming | undefined;
}

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
