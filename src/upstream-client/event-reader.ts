import type { StreamDecoder } from "../upstreams/adapter.ts";
import type { EventBatches } from "./event-batches.ts";
import type { UpstreamAnswer } from "./send.ts";

export interface EventReaderOptions<Event> {
  readonly answer: UpstreamAnswer;
  readonly decoder: StreamDecoder<Event>;
  /** Called at the end of the stream if it had malformed events. */
  readonly onMalformed: (count: number) => void;
}

/** Reads a streamed answer as batches of events, one batch per network chunk. */
export class EventReader<Event> implements EventBatches<Event> {
  readonly #options: EventReaderOptions<Event>;
  #isOver = false;

  constructor(options: EventReaderOptions<Event>) {
    this.#options = options;
  }

  /** Throws like `UpstreamAnswer.read`. */
  async next(): Promise<readonly Event[] | undefined> {
    const { answer, decoder } = this.#options;
    while (!this.#isOver) {
      const read = this.#read();
      const bytes = read instanceof Promise ? await this.#whenRead(read) : read;
      const events = bytes === undefined ? decoder.end() : decoder.push(bytes);
      this.#checkEnd(bytes === undefined);
      if (events.length > 0) return events;
    }
    const { failure } = decoder;
    if (failure !== undefined) throw answer.explained(failure);
    return undefined;
  }

  cancel(): void {
    if (this.#isOver) return;
    this.#end();
    this.#options.answer.cancel();
  }

  #read(): ReturnType<UpstreamAnswer["read"]> {
    try {
      return this.#options.answer.read();
    } catch (error) {
      this.#end();
      throw error;
    }
  }

  async #whenRead(read: Promise<Uint8Array | undefined>): Promise<Uint8Array | undefined> {
    try {
      return await read;
    } catch (error) {
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
    if (this.#isOver) return;
    this.#isOver = true;
    const { decoder, onMalformed } = this.#options;
    if (decoder.malformedEvents > 0) onMalformed(decoder.malformedEvents);
  }
}
