import { type AdjustedFields, nothingAdjusted } from "../../domain/chat/chat.ts";
import type { AttemptNote, AttemptOutcome } from "../../domain/usage/call-routing.ts";
import type { AttemptTiming } from "../../domain/tracing.ts";
import type { Clock } from "../../domain/clock.ts";
import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import {
  UpstreamFailure,
  type UpstreamFailureDetails,
} from "../../domain/errors/upstream-failure.ts";
import type { CallOutcome } from "../../domain/usage/usage.ts";
import type { Place } from "../../admission/capacity/place.ts";
import type { Candidate } from "../../routing/candidates.ts";
import { mayBeBilled } from "../../routing/retry.ts";
import type { AttemptWatch } from "../../routing/health/target-health.ts";

export interface RunningAttemptParts {
  readonly candidate: Candidate;
  readonly place: Place;
  readonly watch: AttemptWatch;
  readonly clock: Pick<Clock, "monotonic">;
  /** Whether hooks may keep its request from being sent. */
  readonly hasHooks?: boolean;
  /** Arrival of the call in monotonic milliseconds. */
  readonly receivedAt: number;
  /** Number of the attempt in its call, from 0. */
  readonly number?: number;
}

/** How an attempt ended: with its answer, abandoned, or with a failure. */
export type AttemptEnd = "answered" | "given-up" | UpstreamFailureDetails;

/** One attempt: holds its place, and reports to the target's health and to the call's routing. */
export class RunningAttempt {
  readonly #parts: RunningAttemptParts;
  readonly #startedAt: number;
  #answeredAt: number | undefined;
  #url: string | undefined;
  #end: AttemptEnd | undefined;
  #durationMs: number | undefined;
  #decision: string | undefined;
  #adjusted = nothingAdjusted;
  #wasSent: boolean;

  constructor(parts: RunningAttemptParts) {
    this.#parts = parts;
    this.#startedAt = parts.clock.monotonic();
    this.#wasSent = parts.hasHooks !== true;
  }

  get candidate(): Candidate {
    return this.#parts.candidate;
  }

  get number(): number {
    return this.#parts.number ?? 0;
  }

  get place(): Place {
    return this.#parts.place;
  }

  /** Fields that were changed for the target. */
  get adjusted(): AdjustedFields {
    return this.#adjusted;
  }

  /** Called when a request is encoded; all requests of an attempt are encoded alike. */
  adjust(fields: AdjustedFields): void {
    this.#adjusted = fields;
  }

  /** Whether a request of it may have reached the upstream. */
  get wasSent(): boolean {
    return this.#wasSent;
  }

  /** A request of it has this address. */
  sentTo(url: string): void {
    this.#url = url;
  }

  sent(): void {
    this.#wasSent = true;
  }

  /** The answer, or its first event, was decoded. */
  answered(): void {
    this.#answeredAt = this.#parts.clock.monotonic();
    this.#parts.watch.answered();
  }

  /** Time in milliseconds after which the answer is overdue; Infinity if unknown. */
  get overdueAfterMs(): number {
    return this.#parts.watch.overdueAfterMs;
  }

  /** A hedge has answered while its own answer was overdue. */
  wasSilent(): void {
    this.#parts.watch.ended("silent");
  }

  /** The decision after its failure, for the operator. */
  decided(decision: string): void {
    this.#decision = decision;
  }

  end(end: AttemptEnd, tokens: number): void {
    this.conclude(end);
    this.release(tokens);
  }

  /** Records the end; the place is kept until `release`. */
  conclude(end: AttemptEnd): void {
    this.#end ??= end;
    this.#durationMs ??= this.ageMs;
  }

  /** Frees the place. */
  release(tokens: number): void {
    const { watch, place } = this.#parts;
    watch.ended(healthOf(this.#end ?? "given-up"));
    try {
      place.settle(tokens);
    } finally {
      place.leave();
    }
  }

  /** Time since it began. */
  get ageMs(): number {
    return this.#parts.clock.monotonic() - this.#startedAt;
  }

  get note(): AttemptNote {
    const { candidate, receivedAt } = this.#parts;
    // Notes are read at the end of the call; an attempt still running then is being aborted.
    const end = this.#end ?? "given-up";
    const outcome = typeof end === "string" ? end : end.kind;
    return {
      target: candidate.target.id,
      model: candidate.model.alias,
      startMs: this.#startedAt - receivedAt,
      durationMs: this.#durationMs ?? this.ageMs,
      outcome,
      mayBeBilled: this.#mayBeBilled(outcome),
      decision: this.#decision,
    };
  }

  /** The attempt as a trace shows it. */
  get timing(): AttemptTiming {
    const { candidate, receivedAt } = this.#parts;
    const end = this.#end;
    const answeredAt = this.#answeredAt;
    return {
      ...this.note,
      upstreamModel: candidate.target.model,
      provider: candidate.upstream.adapter.provider,
      url: this.#url,
      firstEventMs: answeredAt === undefined ? undefined : answeredAt - receivedAt,
      status: typeof end === "object" ? end.status : undefined,
    };
  }

  #mayBeBilled(outcome: AttemptOutcome): boolean {
    // The answer served the call and is billed as such.
    if (outcome === "answered") return false;
    if (outcome === "given-up") return this.#wasSent;
    return mayBeBilled(outcome, this.#answeredAt !== undefined);
  }
}

/** How the attempt that serves a call ends with it. */
export function attemptEndOf(outcome: CallOutcome, error: GatewayError | undefined): AttemptEnd {
  if (outcome === "completed") return "answered";
  return error?.cause instanceof UpstreamFailure ? error.cause.details : "given-up";
}

function healthOf(end: AttemptEnd): Parameters<AttemptWatch["ended"]>[0] {
  if (end === "answered") return "ok";
  return end === "given-up" ? "left" : end;
}
