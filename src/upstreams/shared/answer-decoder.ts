import type { ChatEvent } from "../../domain/chat/answer.ts";
import { brokenAnswer, UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import { countOf, parseObject } from "../../domain/json-fields.ts";
import type { DecoderLimits, StreamDecoder, WholeAnswer } from "../adapter.ts";
import { WholeBody } from "./whole-body.ts";

/**
 * What the decoders of all kinds do alike: nothing is read after the end or a failure, a whole
 * answer in place of a stream is replayed, and malformed events are counted.
 */
export abstract class AnswerDecoder implements StreamDecoder<ChatEvent> {
  readonly #body: WholeBody;
  readonly #mostMalformed: number;
  #malformedEvents = 0;
  #isDone = false;
  #failure: UpstreamFailure | undefined;

  constructor(limits: DecoderLimits) {
    this.#body = new WholeBody(limits);
    this.#mostMalformed = limits.malformedEvents;
  }

  get failure(): UpstreamFailure | undefined {
    return this.#failure;
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  get malformedEvents(): number {
    return this.#malformedEvents;
  }

  push(bytes: Uint8Array): readonly ChatEvent[] {
    const events: ChatEvent[] = [];
    if (this.#isDone || this.#failure !== undefined) return events;
    try {
      if (!this.#body.take(bytes)) this.read(bytes, events);
    } catch (error) {
      this.#failure = answerFailure(error);
    }
    return events;
  }

  end(): readonly ChatEvent[] {
    const events: ChatEvent[] = [];
    if (this.#isDone || this.#failure !== undefined) return events;
    try {
      const json = this.#body.end();
      if (json === undefined) this.readEnd(events);
      else return this.#replay(json);
    } catch (error) {
      this.#failure = answerFailure(error);
    }
    return events;
  }

  /** Of an answer that is not whole, nothing is replayed: another target can still answer. */
  #replay(json: string): readonly ChatEvent[] {
    const events = this.readWhole(json);
    this.#isDone = true;
    return events;
  }

  /** Adds the events of the next bytes of a stream; those before an error are kept. */
  protected abstract read(bytes: Uint8Array, events: ChatEvent[]): void;
  /** Adds the last events of a stream. Throws when it was cut short. */
  protected abstract readEnd(events: ChatEvent[]): void;
  protected abstract readWhole(json: string): readonly ChatEvent[];

  /** The answer is complete. */
  protected finish(): void {
    this.#isDone = true;
  }

  /** Counts a malformed event, whose content the caller does not get, and throws if it must end the answer. */
  protected skipMalformed({ mayGoOn }: { readonly mayGoOn: boolean }): void {
    this.#malformedEvents += 1;
    if (mayGoOn && this.#malformedEvents <= this.#mostMalformed) return;
    throw brokenAnswer("the upstream sent a malformed event");
  }
}

/**
 * Turns an error in reading an answer into a failure: invalid JSON, or JSON that is nested too
 * deep.
 */
export function answerFailure(error: unknown): UpstreamFailure {
  if (error instanceof UpstreamFailure) return error;
  return brokenAnswer("the upstream's answer is not the expected JSON", error);
}

/** The tokens in the one field of an answer. Every input has some; a count of 0 would pass any limit. */
export function decodeCount({ body }: WholeAnswer, field: string): number {
  const count = countOf(parseObject(body)?.[field]);
  if (count === undefined || count === 0) throw brokenAnswer("the answer has no count");
  return count;
}
