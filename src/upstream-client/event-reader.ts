import type { StreamDecoder } from "../upstreams/adapter.ts";
import type { EventBatches } from "./event-batches.ts";
import type { UpstreamAnswer } from "./send.ts";

export interface EventReaderOptions<Event> {
  readonly answer: UpstreamAnswer;
  readonly decoder: StreamDecoder<Event>;
  /** Called at the end of the stream if it had malformed events. */
  readonly onMalformed: (count: number) => void;
}

/**
 * Decodes a streamed answer as it is taken: one batch of events for the bytes that arrived
 * together.
 */
export class EventReader<Event> implements EventBatches<Event> {
  readonly #options: EventReaderOptions<Event>;
  /** Whether nothing more is decoded. */
  #hasEnded = false;
  /** Whether it was cancelled, or the connection failed. */
  #isBroken = false;

  constructor(options: EventReaderOptions<Event>) {
    this.#options = options;
  }

  /** Throws `UpstreamFailure` or `GatewayError`. */
  take(): readonly Event[] | undefined {
    const { answer, decoder } = this.#options;
    while (!this.#hasEnded) {
      const bytes = this.#takeBytes();
      if (bytes === undefined && !answer.isOver) return undefined;
      const events = bytes === undefined ? decoder.end() : decoder.push(bytes);
      this.#checkEnd(bytes === undefined);
      if (events.length > 0) return events;
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
