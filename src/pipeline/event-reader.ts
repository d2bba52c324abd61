import type { StreamDecoder } from "../upstreams/adapter.ts";
import type { EventBatches } from "./event-batches.ts";
import type { UpstreamAnswer } from "./send.ts";

/** Reads a streamed answer as batches of events: one batch for each piece the network brings. */
export class EventReader<Event> implements EventBatches<Event> {
  readonly #answer: UpstreamAnswer;
  readonly #decoder: StreamDecoder<Event>;
  #isOver = false;

  constructor(answer: UpstreamAnswer, decoder: StreamDecoder<Event>) {
    this.#answer = answer;
    this.#decoder = decoder;
  }

  /** Throws like `UpstreamAnswer.read`. */
  async next(): Promise<readonly Event[] | undefined> {
    while (!this.#isOver) {
      const bytes = await this.#read();
      const events = bytes === undefined ? this.#decoder.end() : this.#decoder.push(bytes);
      this.#checkEnd(bytes === undefined);
      if (events.length > 0) return events;
    }
    const { failure } = this.#decoder;
    if (failure !== undefined) throw this.#answer.explained(failure);
    return undefined;
  }

  cancel(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#answer.cancel();
  }

  async #read(): Promise<Uint8Array | undefined> {
    try {
      return await this.#answer.read();
    } catch (error) {
      this.#isOver = true;
      throw error;
    }
  }

  #checkEnd(isBodyOver: boolean): void {
    if (this.#decoder.failure !== undefined) this.cancel();
    else if (isBodyOver) this.#isOver = true;
    else if (this.#decoder.isDone) {
      this.#isOver = true;
      this.#answer.finish();
    }
  }
}
