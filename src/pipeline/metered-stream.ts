import { abortable } from "../domain/abortable.ts";
import type { ChatEvent } from "../domain/chat.ts";
import type { Clock } from "../domain/clock.ts";
import type { GatewayError } from "../domain/gateway-error.ts";
import type { Model } from "../domain/model.ts";
import type { TokenUsage } from "../domain/usage.ts";
import type { DrainableAnswer } from "./drain.ts";
import type { OpenStream } from "./event-batches.ts";
import type { Meter } from "./meter.ts";
import { toCallError } from "./run-call.ts";

export interface MeteredStreamOptions {
  readonly open: OpenStream<ChatEvent>;
  readonly meter: Meter;
  readonly model: Model;
  readonly clock: Pick<Clock, "schedule">;
  /** Choices that were asked for. */
  readonly choices: number;
  /** Undefined: the upstream is aborted when the caller leaves. */
  readonly drain: DrainableAnswer | undefined;
}

/**
 * A streamed answer that accounts for itself: when it ends, fails or is left, the meter learns of
 * it before the caller does, once.
 */
export class MeteredStream {
  readonly #options: MeteredStreamOptions;
  #first: readonly ChatEvent[] | undefined;
  /** A batch that was asked for and that nobody has looked at. */
  #reading: Promise<readonly ChatEvent[] | undefined> | undefined;
  #finishedChoices = 0;
  #isReported = false;
  #isOver = false;

  constructor(options: MeteredStreamOptions) {
    this.#options = options;
    this.#first = options.open.first;
    options.drain?.caller.handOver(() => this.cancel());
  }

  /** Counts of the whole answer; meaningful after `next` has returned undefined. */
  get usage(): TokenUsage {
    return this.#options.meter.usage;
  }

  /**
   * The next batch of events; undefined at the end of a whole answer, and once the caller has left.
   * Throws `GatewayError`.
   */
  async next(): Promise<readonly ChatEvent[] | undefined> {
    if (this.#isOver) return undefined;
    try {
      const events = await this.#read();
      if (this.#isLeft()) return undefined;
      this.#reading = undefined;
      for (const event of events ?? []) this.#observe(event, true);
      if (events === undefined) this.#end(() => this.#options.meter.completed());
      return events;
    } catch (error) {
      if (this.#isLeft()) return undefined;
      const failure = toCallError(error, this.#options.model);
      this.#end(() => this.#fail(failure));
      throw failure;
    }
  }

  /**
   * The caller is gone. Closes the upstream, or reads it on for its count; after the end of the
   * answer it changes nothing.
   */
  cancel(): void {
    if (this.#isOver) return;
    const { open, drain } = this.#options;
    if (!this.#isTold() && drain?.places.tryEnter() === true) {
      this.#end(() => void this.#readOn(drain));
      return;
    }
    open.rest.cancel();
    this.#end(() => this.#leave(this.#isWhole()));
  }

  /** Whether the caller left while a batch was awaited; whoever reads on accounts for it. */
  #isLeft(): boolean {
    return this.#isOver;
  }

  /** Whether the caller has got all there is. */
  #isWhole(): boolean {
    return this.#finishedChoices >= this.#options.choices;
  }

  /** Whether the upstream has said all that the account needs. */
  #isTold(): boolean {
    return this.#isReported && this.#isWhole();
  }

  #end(account: () => void): void {
    this.#isOver = true;
    this.#options.drain?.caller.release();
    account();
  }

  #fail(failure: GatewayError): void {
    if (failure.row.status === 499) this.#leave(this.#isWhole());
    else this.#options.meter.failed(failure);
  }

  /** Finished wins over closed: nobody has to wait for the connection to end. */
  #leave(isWhole: boolean): void {
    const { meter } = this.#options;
    if (isWhole) meter.completed();
    else meter.abandoned();
  }

  /** To the upstream's count, or as long as it may take; what comes is not delivered to anybody. */
  async #readOn({ timeoutMs, places }: DrainableAnswer): Promise<void> {
    const { rest } = this.#options.open;
    const wasWhole = this.#isWhole();
    const end = new AbortController();
    const cancel = this.#options.clock.schedule(() => end.abort(), timeoutMs);
    const deadline = end.signal;
    try {
      let events = await abortable(this.#reading ?? this.#read(), deadline);
      while (events !== undefined) {
        for (const event of events) this.#observe(event, false);
        events = this.#isTold() ? undefined : await abortable(rest.next(), deadline);
      }
    } catch {
      // Whatever ended it: what the upstream did not say is counted as delivered.
    } finally {
      cancel();
      rest.cancel();
      places.leave();
      this.#leave(wasWhole);
    }
  }

  #read(): Promise<readonly ChatEvent[] | undefined> {
    const first = this.#first;
    this.#first = undefined;
    this.#reading = first === undefined ? this.#options.open.rest.next() : Promise.resolve(first);
    return this.#reading;
  }

  #observe(event: ChatEvent, isDelivered: boolean): void {
    const { meter } = this.#options;
    switch (event.type) {
      case "text-delta":
      case "refusal-delta":
      case "reasoning-delta":
        if (isDelivered) meter.delivering(event.text.length);
        return;
      case "tool-call-delta":
      case "function-call-delta":
        if (isDelivered) meter.delivering(event.arguments.length);
        return;
      case "usage-report":
        this.#isReported = true;
        meter.reported(event.usage);
        return;
      case "choice-finish":
        this.#finishedChoices += 1;
        return;
      case "answer-start":
      case "tool-call-start":
      case "function-call-start":
        return;
    }
  }
}
