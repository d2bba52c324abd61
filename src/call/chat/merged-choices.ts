import { type EndSignal, endingWith, type EndSource } from "../../domain/waiting/end-signal.ts";
import type { ChatEvent } from "../../domain/chat/answer.ts";
import { WaitingReader } from "../../domain/waiting/flow.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import type { EventBatches, OpenStream } from "../../upstream-client/event-reader.ts";
import { largest, sumReported, sumUsage } from "../metering/call-usage.ts";

export interface MergedChoicesOptions {
  readonly choices: number;
  /** The streams of the first choices; their number is the limit on open streams. */
  readonly opened: readonly OpenStream<ChatEvent>[];
  readonly open: (choice: number, signal: EndSignal) => Promise<OpenStream<ChatEvent>>;
  /** Called once no further stream will be opened. */
  readonly onAllOpen: () => void;
  /** Aborts when the caller leaves. */
  readonly signal: EndSignal;
}

/** The stream of one choice. */
interface OpenChoice {
  readonly choice: number;
  readonly rest: EventBatches<ChatEvent>;
  /** The first batch, until it is taken. */
  first: readonly ChatEvent[] | undefined;
}

/** Merges one stream per choice into one answer. Streams with events take turns. */
export class MergedChoices implements EventBatches<ChatEvent> {
  readonly #choices: number;
  /** Undefined once no further stream will be opened: it holds the request, which may be large. */
  #opener: Pick<MergedChoicesOptions, "open" | "onAllOpen"> | undefined;
  readonly #open = new Set<OpenChoice>();
  /** Streams that may have events. */
  readonly #ready: OpenChoice[] = [];
  /** Ends the streams that are being opened. */
  readonly #opening: EndSource;
  readonly #usages: (TokenUsage | undefined)[] = [];
  readonly #reader = new WaitingReader();
  #openFailure: { readonly error: unknown } | undefined;
  #startedChoices = 0;
  #openChoices = 0;
  #endedChoices = 0;
  #hasBegun = false;
  #isOver = false;

  constructor(options: MergedChoicesOptions) {
    this.#choices = options.choices;
    this.#opening = endingWith(options.signal);
    this.#opener = options;
    for (const stream of options.opened) {
      this.#follow(this.#startedChoices++, stream);
      this.#opened();
    }
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Returns the next batch of any choice. The first failure ends all choices. */
  take(): readonly ChatEvent[] | undefined {
    if (this.#isOver) return undefined;
    try {
      for (let next = this.#ready.shift(); next !== undefined; next = this.#ready.shift()) {
        const merged = this.#takeFrom(next);
        if (merged.length > 0) return merged;
      }
      if (this.#openFailure !== undefined) throw this.#openFailure.error;
      return undefined;
    } catch (error) {
      this.cancel();
      throw error;
    }
  }

  whenReady(call: () => void): void {
    this.#reader.whenReady(call);
  }

  cancel(): void {
    this.#isOver = true;
    this.#ready.length = 0;
    this.#opening.abort();
    this.#endOpening();
    for (const { rest } of this.#open) rest.cancel();
  }

  #start(): void {
    const choice = this.#startedChoices;
    this.#startedChoices += 1;
    this.#opener?.open(choice, this.#opening).then(
      (stream) => {
        this.#opened();
        if (this.#isOver) return stream.rest.cancel();
        this.#follow(choice, stream);
        this.#reader.wake();
      },
      (error: unknown) => {
        this.#openFailure ??= { error };
        this.#reader.wake();
      },
    );
  }

  #opened(): void {
    this.#openChoices += 1;
    if (this.#openChoices === this.#choices) this.#endOpening();
  }

  #endOpening(): void {
    this.#opener?.onAllOpen();
    this.#opener = undefined;
  }

  #follow(choice: number, { first, rest }: OpenStream<ChatEvent>): void {
    const stream = { choice, first, rest };
    this.#open.add(stream);
    this.#ready.push(stream);
  }

  #takeFrom(stream: OpenChoice): readonly ChatEvent[] {
    const events = stream.first ?? stream.rest.take();
    stream.first = undefined;
    if (events !== undefined) {
      this.#ready.push(stream);
      return events.flatMap((event) => this.#translate(stream.choice, event));
    }
    if (stream.rest.isOver) return this.#end(stream);
    stream.rest.whenReady(() => {
      this.#ready.push(stream);
      this.#reader.wake();
    });
    return [];
  }

  #end(stream: OpenChoice): readonly ChatEvent[] {
    this.#open.delete(stream);
    this.#endedChoices += 1;
    const choices = this.#choices;
    if (this.#startedChoices < choices) this.#start();
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
      // Of one of several requests; their reports at the end are added up.
      case "usage-start":
        return [];
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
