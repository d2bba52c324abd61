import type { StreamDecoder } from "../upstreams/adapter.ts";
import type { EventBatches } from "./event-batches.ts";
import type { UpstreamAnswer } from "./send.ts";

export interface EventReaderOptions<Event> {
  readonly answer: UpstreamAnswer;
  readonly decoder: StreamDecoder<Event>;
  /** Called at the end of the stream if it had malformed events. */
  readonly onMalformed: (count: number) => void;
}

/** Who waits for the next batch. */
interface Waiting<Event> {
  readonly resolve: (events: readonly Event[] | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Reads a streamed answer as batches of events, one batch for what came at once. A batch is decoded
 * in the turn of the event loop in which its bytes arrive.
 */
export class EventReader<Event> implements EventBatches<Event> {
  readonly #options: EventReaderOptions<Event>;
  readonly #onReady = (): void => this.#advance();
  #waiting: Waiting<Event> | undefined;
  #isOver = false;
  #isCancelled = false;

  constructor(options: EventReaderOptions<Event>) {
    this.#options = options;
  }

  /** Rejects with `UpstreamFailure` or `GatewayError`. */
  next(): Promise<readonly Event[] | undefined> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#advance();
    });
  }

  cancel(): void {
    if (this.#isOver) return;
    this.#isCancelled = true;
    this.#end();
    this.#options.answer.cancel();
  }

  /** Goes on as far as bytes have come. */
  #advance(): void {
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    try {
      const events = this.#read();
      if (events === "waiting") return;
      this.#waiting = undefined;
      waiting.resolve(events);
    } catch (error) {
      this.#waiting = undefined;
      this.#end();
      waiting.reject(error);
    }
  }

  /** The next batch, undefined at the end; `waiting`: goes on when more bytes come. */
  #read(): readonly Event[] | undefined | "waiting" {
    const { answer, decoder } = this.#options;
    while (!this.#isOver) {
      const bytes = answer.take();
      if (bytes === undefined && !answer.isOver) {
        answer.whenReady(this.#onReady);
        return "waiting";
      }
      const events = bytes === undefined ? decoder.end() : decoder.push(bytes);
      this.#checkEnd(bytes === undefined);
      if (events.length > 0) return events;
    }
    // Throws what ended it.
    if (this.#isCancelled && decoder.failure === undefined) answer.take();
    if (decoder.failure !== undefined) throw answer.explained(decoder.failure);
    return undefined;
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
