import { nothingAdjusted, type AdjustedFields } from "../../domain/chat/adjusted-fields.ts";
import type { AttemptNote, AttemptOutcome } from "../../domain/usage/call-routing.ts";
import type { Clock } from "../../domain/clock.ts";
import type { UpstreamFailureDetails } from "../../domain/errors/upstream-failure.ts";
import type { Place } from "../../admission/capacity/place.ts";
import type { Candidate } from "../../routing/candidates.ts";
import { mayBeBilled } from "../../routing/retry.ts";
import type { AttemptWatch } from "../../routing/health/target-health.ts";

export interface RunningAttemptParts {
  readonly candidate: Candidate;
  readonly place: Place;
  readonly watch: AttemptWatch;
  readonly clock: Pick<Clock, "monotonic">;
  /** When the call arrived, monotonic milliseconds. */
  readonly receivedAt: number;
}

/** How an attempt ended: with its answer, for nobody, or with a failure. */
export type AttemptEnd = "answered" | "given-up" | UpstreamFailureDetails;

/**
 * One attempt: the place it holds, what its target's health learns of it, and what explanations
 * will say. It ends once, whatever ends it.
 */
export class RunningAttempt {
  readonly #parts: RunningAttemptParts;
  readonly #startedAt: number;
  #hasAnswered = false;
  #end: AttemptEnd | undefined;
  #durationMs: number | undefined;
  #decision: string | undefined;
  #adjusted = nothingAdjusted;

  constructor(parts: RunningAttemptParts) {
    this.#parts = parts;
    this.#startedAt = parts.clock.monotonic();
  }

  get candidate(): Candidate {
    return this.#parts.candidate;
  }

  get place(): Place {
    return this.#parts.place;
  }

  /** What its target got otherwise than the caller wrote it. */
  get adjusted(): AdjustedFields {
    return this.#adjusted;
  }

  /** Its request is written; several requests of one attempt are written alike. */
  adjust(fields: AdjustedFields): void {
    this.#adjusted = fields;
  }

  /** The answer, or the first event of it, is decoded. */
  answered(): void {
    this.#hasAnswered = true;
    this.#parts.watch.answered();
  }

  /** When the answer is overdue, milliseconds from the begin; Infinity if that is unknown. */
  get overdueAfterMs(): number {
    return this.#parts.watch.overdueAfterMs;
  }

  /** Runs something when the target turns out to be silent while the answer is waited for. */
  whenSilent(run: () => void): void {
    this.#parts.watch.whenSilent(run);
  }

  /** What was decided after it failed, in words for the operator. */
  decided(decision: string): void {
    this.#decision = decision;
  }

  end(end: AttemptEnd, tokens: number): void {
    this.conclude(end);
    this.release(tokens);
  }

  /** What became of it; what it holds it keeps until it is released. */
  conclude(end: AttemptEnd): void {
    this.#end ??= end;
    this.#durationMs ??= this.#age();
  }

  /** Gives back what it holds. */
  release(tokens: number): void {
    const { watch, place } = this.#parts;
    watch.ended(healthOf(this.#end ?? "given-up"));
    try {
      place.settle(tokens);
    } finally {
      place.leave();
    }
  }

  get note(): AttemptNote {
    const { candidate, receivedAt } = this.#parts;
    // Notes are taken when the call has ended: what still runs then is on its way out.
    const end = this.#end ?? "given-up";
    const outcome = typeof end === "string" ? end : end.kind;
    return {
      target: candidate.target.id,
      model: candidate.model.alias,
      startMs: this.#startedAt - receivedAt,
      durationMs: this.#durationMs ?? this.#age(),
      outcome,
      mayBeBilled: this.#mayBeBilled(outcome),
      decision: this.#decision,
    };
  }

  #age(): number {
    return this.#parts.clock.monotonic() - this.#startedAt;
  }

  #mayBeBilled(outcome: AttemptOutcome): boolean {
    // The caller got the answer: that is the call's own bill.
    if (outcome === "answered") return false;
    if (outcome === "given-up") return true;
    return mayBeBilled(outcome, this.#hasAnswered);
  }
}

function healthOf(end: AttemptEnd): Parameters<AttemptWatch["ended"]>[0] {
  if (end === "answered") return "ok";
  return end === "given-up" ? "left" : end;
}
