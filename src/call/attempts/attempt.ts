import { type AdjustedFields, nothingAdjusted } from "../../domain/chat/answer.ts";
import type { AttemptNote, AttemptOutcome } from "../../domain/usage/call-routing.ts";
import { type AttemptTiming, traceparentOf } from "../../domain/tracing.ts";
import { type EndSignal, endingWith, type EndSource } from "../../domain/waiting/end-signal.ts";
import type { Admission } from "../../admission/admit.ts";
import type { Place } from "../../admission/capacity/place.ts";
import type { Candidate, Destination } from "../../routing/candidates.ts";
import type { Call } from "../../snapshot/call.ts";
import type { AttemptEnd, NotedAttempt } from "../call-path.ts";
import type { Meter } from "../metering/meter.ts";
import type { CallServices } from "../services.ts";
import { mayBeBilled } from "../../routing/retry.ts";
import type { AttemptWatch } from "../../routing/health/target-health.ts";

/** What a request to an upstream belongs to. */
export interface AttemptContext {
  readonly call: Call;
  readonly meter: Pick<Meter, "attemptFailed">;
  readonly services: CallServices;
  readonly candidate: Destination;
  /** Ends the request. */
  readonly signal: EndSignal;
  /** Undefined for a request that belongs to no attempt, such as one that counts tokens. */
  readonly attempt: Attempt | undefined;
  /** The part of the call that the request is for, from 0 to 1. */
  readonly share: number;
}

/** A request for a part of a call, or with an end of its own. */
export function partOf(attempt: Attempt, signal: EndSignal, share = 1): AttemptContext {
  const { call, meter, services, candidate } = attempt;
  return { call, meter, services, candidate, signal, attempt, share };
}

/** The call of an attempt. */
export interface AttemptedCall {
  readonly call: Call;
  readonly admission: Pick<Admission, "outputCap">;
  readonly meter: Meter;
  readonly services: CallServices;
}

export interface AttemptParts {
  readonly candidate: Candidate;
  readonly place: Place;
  readonly watch: AttemptWatch;
  /** Number of the attempt in its call, from 0. */
  readonly number: number;
}

/** One attempt: holds its place, and reports to the target's health and to the call's routing. */
export class Attempt implements AttemptContext, NotedAttempt {
  readonly call: Call;
  readonly meter: Meter;
  readonly services: CallServices;
  readonly candidate: Candidate;
  readonly place: Place;
  readonly number: number;
  /** The plan's cap on output, if the caller set none. */
  readonly outputCap: number | undefined;
  /** Whether another target could accept a request that this one refuses. */
  hasOther = false;
  readonly share = 1;
  #signal: EndSignal;
  readonly #watch: AttemptWatch;
  readonly #startedAt: number;
  #answeredAt: number | undefined;
  #url: string | undefined;
  #end: AttemptEnd | undefined;
  #durationMs: number | undefined;
  #decision: string | undefined;
  #adjusted = nothingAdjusted;
  #wasSent: boolean;

  constructor({ call, admission, meter, services }: AttemptedCall, parts: AttemptParts) {
    this.call = call;
    this.meter = meter;
    this.services = services;
    this.candidate = parts.candidate;
    this.place = parts.place;
    this.number = parts.number;
    this.outputCap = admission.outputCap;
    this.#signal = call.signal;
    this.#watch = parts.watch;
    this.#startedAt = services.clock.monotonic();
    // Hooks may keep its request from being sent.
    this.#wasSent = call.hooks === undefined;
  }

  get attempt(): this {
    return this;
  }

  get signal(): EndSignal {
    return this.#signal;
  }

  /** From now on it can be ended alone. */
  endsAlone(): EndSource {
    const own = endingWith(this.#signal);
    this.#signal = own;
    return own;
  }

  /** The trace context that its requests carry; undefined where no traces are sent. */
  get traceparent(): string | undefined {
    const { id, origin } = this.call;
    return origin?.spans && traceparentOf(id, origin.spans, this.number);
  }

  /** Fields that were changed for the target. */
  get adjusted(): AdjustedFields {
    return this.#adjusted;
  }

  /** Called when a request is prepared and encoded; all requests of an attempt are alike. */
  adjust(fields: AdjustedFields): void {
    const known = this.#adjusted;
    this.#adjusted = known.size === 0 ? fields : new Map([...known, ...fields]);
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
    this.#answeredAt = this.services.clock.monotonic();
    this.meter.answering();
    this.#watch.answered();
  }

  /** Time in milliseconds after which the answer is overdue; Infinity if unknown. */
  get overdueAfterMs(): number {
    return this.#watch.overdueAfterMs;
  }

  /** A hedge has answered while its own answer was overdue. */
  wasSilent(): void {
    this.#watch.ended("silent");
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
    this.#watch.ended(healthOf(this.#end ?? "given-up"));
    try {
      this.place.settle(tokens);
    } finally {
      this.place.leave();
    }
  }

  /** Time since it began. */
  get ageMs(): number {
    return this.services.clock.monotonic() - this.#startedAt;
  }

  get note(): AttemptNote {
    const { candidate } = this;
    // Notes are read at the end of the call; an attempt still running then is being aborted.
    const end = this.#end ?? "given-up";
    const outcome = typeof end === "string" ? end : end.kind;
    return {
      target: candidate.target.id,
      model: candidate.model.alias,
      startMs: this.#startedAt - this.call.receivedAt,
      durationMs: this.#durationMs ?? this.ageMs,
      outcome,
      mayBeBilled: this.#mayBeBilled(outcome),
      decision: this.#decision,
    };
  }

  /** The attempt as a trace shows it. */
  get timing(): AttemptTiming {
    const { candidate } = this;
    const end = this.#end;
    const answeredAt = this.#answeredAt;
    return {
      ...this.note,
      upstreamModel: candidate.target.model,
      provider: candidate.upstream.adapter.provider,
      url: this.#url,
      firstEventMs: answeredAt === undefined ? undefined : answeredAt - this.call.receivedAt,
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

function healthOf(end: AttemptEnd): Parameters<AttemptWatch["ended"]>[0] {
  if (end === "answered") return "ok";
  return end === "given-up" ? "left" : end;
}
