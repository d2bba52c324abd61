import type { AttemptNote, AttemptOutcome } from "../domain/call-routing.ts";
import type { Clock } from "../domain/clock.ts";
import type { UpstreamFailureDetails } from "../domain/upstream-failure.ts";
import type { Place } from "./capacity/place.ts";
import type { Candidate } from "./routing/candidates.ts";
import { mayBeBilled } from "./routing/retry.ts";
import type { AttemptWatch } from "./routing/target-health.ts";

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
  #outcome: AttemptOutcome | undefined;
  #durationMs = 0;

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

  /** The answer, or the first event of it, is decoded. */
  answered(): void {
    this.#hasAnswered = true;
    const { watch, clock } = this.#parts;
    watch.answered(clock.monotonic() - this.#startedAt);
  }

  end(end: AttemptEnd, tokens: number): void {
    if (this.#outcome !== undefined) return;
    const { watch, place, clock } = this.#parts;
    this.#outcome = typeof end === "string" ? end : end.kind;
    this.#durationMs = clock.monotonic() - this.#startedAt;
    watch.ended(healthOf(end));
    place.settle(tokens);
    place.leave();
  }

  get note(): AttemptNote {
    const { candidate, receivedAt } = this.#parts;
    // Notes are taken when the call has ended: what still runs then is on its way out.
    const outcome = this.#outcome ?? "given-up";
    return {
      target: candidate.target.id,
      model: candidate.model.alias,
      startMs: this.#startedAt - receivedAt,
      durationMs: this.#durationMs,
      outcome,
      mayBeBilled: this.#mayBeBilled(outcome),
    };
  }

  #mayBeBilled(outcome: AttemptOutcome): boolean {
    if (outcome === "answered" || outcome === "given-up") return true;
    return mayBeBilled(outcome, this.#hasAnswered);
  }
}

function healthOf(end: AttemptEnd): Parameters<AttemptWatch["ended"]>[0] {
  if (end === "answered") return "ok";
  return end === "given-up" ? "left" : end;
}
