import type { ChatEvent } from "../domain/chat/answer.ts";
import type { StreamDecoder } from "../upstreams/adapter.ts";
import type { UpstreamAnswer } from "./send.ts";
import { WholeCharacters } from "./whole-characters.ts";
import type { Flow } from "../domain/waiting/flow.ts";

interface EventReaderOptions {
  readonly answer: UpstreamAnswer;
  readonly decoder: StreamDecoder<ChatEvent>;
  readonly tagEvents?: ((events: readonly ChatEvent[]) => readonly ChatEvent[]) | undefined;
  /** Called at the end of the stream if it had malformed events. */
  readonly onMalformed: (count: number) => void;
}

/** Decodes a streamed answer as it is taken: a batch of events for what arrived together. */
export class EventReader implements EventBatches<ChatEvent> {
  readonly #options: EventReaderOptions;
  readonly #characters = new WholeCharacters();
  /** Whether nothing more is decoded. */
  #hasEnded = false;
  /** Whether it was cancelled, or the connection failed. */
  #isBroken = false;

  constructor(options: EventReaderOptions) {
    this.#options = options;
  }

  /** Throws `UpstreamFailure` or `GatewayError`. */
  take(): readonly ChatEvent[] | undefined {
    const { answer, decoder, tagEvents } = this.#options;
    while (!this.#hasEnded) {
      const bytes = this.#takeBytes();
      if (bytes === undefined && !answer.isOver) return undefined;
      const decoded = bytes === undefined ? decoder.end() : decoder.push(bytes);
      const events = this.#characters.join(decoded);
      this.#checkEnd(bytes === undefined);
      if (events.length > 0) return tagEvents === undefined ? events : tagEvents(events);
    }
    if (decoder.failure !== undefined) throw answer.explained(decoder.failure);
    // Throws the reason of the end.
    if (this.#isBroken) answer.take();
    return undefined;
  }

  get isOver(): boolean {
    const { answer, decoder } = this.#options;
    if (decoder.failure !== undefined) return false;
    return this.#hasEnded && (!this.#isBroken || answer.isOver);
  }

  whenReady(call: () => void): void {
    this.#options.answer.whenReady(call);
  }

  cancel(): void {
    if (this.#hasEnded) return;
    this.#isBroken = true;
    this.#end();
    this.#options.answer.cancel();
  }

  #takeBytes(): Uint8Array | undefined {
    try {
      return this.#options.answer.take();
    } catch (error) {
      this.#isBroken = true;
      this.#end();
      throw error;
    }
  }

  #checkEnd(isBodyOver: boolean): void {
    const { answer, decoder } = this.#options;
    if (decoder.failure !== undefined) this.cancel();
    else if (isBodyOver) this.#end();
    else if (decoder.isDone) {
      this.#end();
      if (decoder.endedEarly === true) answer.cancel();
      else answer.finish();
    }
  }

  #end(): void {
    this.#hasEnded = true;
    const { decoder, onMalformed } = this.#options;
    if (decoder.malformedEvents > 0) onMalformed(decoder.malformedEvents);
  }
}

/** An open streamed answer, read in batches of events, none of them empty. */
export interface EventBatches<Event> extends Flow<readonly Event[]> {
  /** Closes the upstream connection, unless the answer is complete. */
  cancel(): void;
}

/** An open streamed answer: its first batch of events and a reader for the rest. */
export interface OpenStream<Event> {
  readonly first: readonly Event[];
  readonly rest: EventBatches<Event>;
}
