import type { ChatEvent } from "../domain/chat.ts";
import type { Model } from "../domain/model.ts";
import type { TokenUsage } from "../domain/usage.ts";
import type { OpenStream } from "./event-batches.ts";
import type { Meter } from "./meter.ts";
import { toCallError } from "./run-call.ts";

export interface MeteredStreamOptions {
  readonly open: OpenStream<ChatEvent>;
  readonly meter: Meter;
  readonly model: Model;
}

/**
 * A streamed answer that accounts for itself: when it ends, fails or is left, the meter learns of
 * it before the caller does, once.
 */
export class MeteredStream {
  readonly #options: MeteredStreamOptions;
  #first: readonly ChatEvent[] | undefined;

  constructor(options: MeteredStreamOptions) {
    this.#options = options;
    this.#first = options.open.first;
  }

  /** Counts of the whole answer; meaningful after `next` has returned undefined. */
  get usage(): TokenUsage {
    return this.#options.meter.usage;
  }

  /** The next batch of events; undefined at the end of a whole answer. Throws `GatewayError`. */
  async next(): Promise<readonly ChatEvent[] | undefined> {
    const { open, meter, model } = this.#options;
    try {
      const events = this.#takeFirst() ?? (await open.rest.next());
      if (events === undefined) meter.completed();
      else for (const event of events) this.#observe(event);
      return events;
    } catch (error) {
      const failure = toCallError(error, model);
      meter.failed(failure);
      throw failure;
    }
  }

  /** The caller is gone. Closes the upstream; after the end of the answer it changes nothing. */
  cancel(): void {
    this.#options.open.rest.cancel();
    this.#options.meter.abandoned();
  }

  #takeFirst(): readonly ChatEvent[] | undefined {
    const first = this.#first;
    this.#first = undefined;
    return first;
  }

  #observe(event: ChatEvent): void {
    const { meter } = this.#options;
    switch (event.type) {
      case "text-delta":
      case "refusal-delta":
      case "reasoning-delta":
        return meter.delivering(event.text.length);
      case "tool-call-delta":
      case "function-call-delta":
        return meter.delivering(event.arguments.length);
      case "usage-report":
        return meter.reported(event.usage);
      case "answer-start":
      case "tool-call-start":
      case "function-call-start":
      case "choice-finish":
        return undefined;
    }
  }
}
