import type { CallRouting, CandidateNote } from "../domain/usage/call-routing.ts";
import type { CallOutcome } from "../domain/usage/usage.ts";
import type { Candidate } from "../routing/candidates.ts";
import type { RunningAttempt } from "./attempts/running-attempt.ts";

/** Notes of candidates that were passed over; a call that waits in a queue makes many. */
const mostPassedOver = 16;

/** How one call found its way: candidates, attempts, and the attempt that serves it. */
export class CallPath {
  #candidates: readonly Candidate[] = [];
  #leftOut: readonly CandidateNote[] = [];
  readonly #passedOver = new Map<string, CandidateNote>();
  readonly #attempts: RunningAttempt[] = [];
  #serving: RunningAttempt | undefined;
  #isHedged = false;

  /** The targets that may serve, in the order in which they are to be tried, and those left out. */
  considered(candidates: readonly Candidate[], leftOut: readonly CandidateNote[]): void {
    this.#candidates = [...candidates];
    this.#leftOut = leftOut;
  }

  /** The turn of a candidate came, and no attempt could begin there. */
  passedOver({ target, model }: Candidate, why: string): void {
    if (this.#passedOver.size >= mostPassedOver) return;
    const note = { target: target.id, model: model.alias, why: `passed over: ${why}` };
    this.#passedOver.set(`${target.id} ${why}`, note);
  }

  began(attempt: RunningAttempt): void {
    this.#attempts.push(attempt);
  }

  /** The attempt whose answer the caller gets; it ends with the call. */
  isServedBy(attempt: RunningAttempt): void {
    this.#serving = attempt;
  }

  get serving(): RunningAttempt | undefined {
    return this.#serving;
  }

  get attempts(): number {
    return this.#attempts.length;
  }

  /** The attempt that serves, else the one that began last. */
  get last(): RunningAttempt | undefined {
    return this.#serving ?? this.#attempts.at(-1);
  }

  /** Nothing is worth keeping of the plain case: one target, one attempt, an answer. */
  routing(outcome: CallOutcome): CallRouting | undefined {
    const candidates = this.#candidates;
    const isAlone = candidates.length + this.#leftOut.length < 2 && this.attempts < 2;
    if (candidates.length === 0 || (isAlone && outcome === "completed")) return undefined;
    return {
      candidates: [...candidates.map(noteOf), ...this.#leftOut, ...this.#passedOver.values()],
      attempts: this.#attempts.map(({ note }) => note),
    };
  }

  /** Two targets work on the call at once; what both do of it is on the bill twice. */
  hedged(): void {
    this.#isHedged = true;
  }

  /** Whether the provider may have done work that nobody got. */
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
