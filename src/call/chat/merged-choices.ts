import type { ChatEvent } from "../../domain/chat/chat.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import type { EventBatches, OpenStream } from "../../upstream-client/event-batches.ts";
import { largest, sumReported, sumUsage } from "../metering/sum-usage.ts";

export interface MergedChoicesOptions {
  readonly choices: number;
  /** The streams of the first choices; their number is the limit on open streams. */
  readonly opened: readonly OpenStream<ChatEvent>[];
  readonly open: (choice: number, signal: AbortSignal) => Promise<OpenStream<ChatEvent>>;
  /** Aborts when the caller leaves. */
  readonly signal: AbortSignal;
}

/** The next batch of a stream, its end, or its failure. */
interface Arrival {
  readonly choice: number;
  readonly batch: Promise<readonly ChatEvent[] | undefined>;
}

/**
 * Merges one stream per choice into one answer. A stream is read on only after its last batch was
 * taken, so at most one batch of each waits here.
 */
export class MergedChoices implements EventBatches<ChatEvent> {
  readonly #options: MergedChoicesOptions;
  readonly #open = new Map<number, EventBatches<ChatEvent>>();
  readonly #opening = new AbortController();
  readonly #usages: (TokenUsage | undefined)[] = [];
  readonly #arrived: Arrival[] = [];
  #wake: () => void = () => undefined;
  #startedChoices = 0;
  #endedChoices = 0;
  #hasBegun = false;
  #isOver = false;

  constructor(options: MergedChoicesOptions) {
    this.#options = options;
    for (const stream of options.opened) this.#start(Promise.resolve(stream));
  }

  /** Returns the next batch of any choice. The first failure ends all choices. */
  async next(): Promise<readonly ChatEvent[] | undefined> {
    try {
      while (!this.#isOver) {
        const { choice, batch } = await this.#nextArrival();
        const events = await batch;
        const merged = events === undefined ? this.#end(choice) : this.#accept(choice, events);
        if (merged.length > 0) return merged;
      }
      return undefined;
    } catch (error) {
      this.cancel();
      throw error;
    }
  }

  cancel(): void {
    this.#isOver = true;
    this.#opening.abort();
    for (const stream of this.#open.values()) stream.cancel();
  }

  #start(opening: Promise<OpenStream<ChatEvent>>): void {
    const choice = this.#startedChoices;
    this.#startedChoices += 1;
    const first = opening.then((stream) => {
      this.#open.set(choice, stream.rest);
      if (this.#isOver) stream.rest.cancel();
      return stream.first;
    });
    this.#await({ choice, batch: first });
  }

  #await(arrival: Arrival): void {
    const arrive = (): void => {
      this.#arrived.push(arrival);
      this.#wake();
    };
    arrival.batch.then(arrive, arrive);
  }

  async #nextArrival(): Promise<Arrival> {
    for (;;) {
      const arrival = this.#arrived.shift();
      if (arrival !== undefined) return arrival;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Reads on at once, so that all choices stream in parallel. */
  #accept(choice: number, events: readonly ChatEvent[]): readonly ChatEvent[] {
    const stream = this.#open.get(choice);
    if (stream !== undefined) this.#await({ choice, batch: stream.next() });
    return events.flatMap((event) => this.#translate(choice, event));
  }

  #end(choice: number): readonly ChatEvent[] {
    this.#open.delete(choice);
    this.#endedChoices += 1;
    const { choices, open, signal } = this.#options;
    if (this.#startedChoices < choices) {
      const either = AbortSignal.any([signal, this.#opening.signal]);
      this.#start(open(this.#startedChoices, either));
    }
    if (this.#endedChoices < choices) return [];
    this.#isOver = true;
    const usage = sumUsage(Array.from({ length: choices }, (_, index) => this.#usages[index]));
    return usage === undefined ? [] : [{ type: "usage-report", usage }];
  }

  /** Sum of the usage reported so far. */
  #keepUsage(choice: number, usage: TokenUsage): TokenUsage {
    this.#usages[choice] = largest(this.#usages[choice], usage);
    return sumReported(this.#usages) ?? usage;
  }

  #translate(choice: number, event: ChatEvent): readonly ChatEvent[] {
    switch (event.type) {
      case "usage-report":
        return [
          { type: "usage-report", usage: this.#keepUsage(choice, event.usage), isPart: true },
        ];
      case "answer-start": {
        const isFirst = !this.#hasBegun;
        this.#hasBegun = true;
        return isFirst ? [event] : [];
      }
      case "text-delta":
      case "refusal-delta":
      case "reasoning-delta":
      case "reasoning-block":
      case "tool-call-start":
      case "tool-call-delta":
      case "function-call-start":
      case "function-call-delta":
      case "choice-finish":
        return [{ ...event, choice }];
    }
  }
}
