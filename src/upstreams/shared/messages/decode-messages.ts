import type { ChatEvent, ChatResult } from "../../../domain/chat/answer.ts";
import { UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";
import { parseObject, usageIn } from "../../../domain/json-fields.ts";
import type { DecoderLimits, WholeAnswer } from "../../adapter.ts";
import { AnswerDecoder, answerFailure } from "../answer-decoder.ts";
import type { AnswerContext } from "../answers/answer-context.ts";
import { collectAnswer, collectStream } from "../collect-answer.ts";
import type { OnUnknownFinish } from "../finish-words.ts";
import { SseParser } from "../sse-parser.ts";
import { parseExactly } from "../tools/tool-arguments.ts";
import { isJson } from "../whole-body.ts";
import { MessagesAnswer, messagesUsage } from "./messages-answer.ts";

/** What reading an answer needs. */
export interface MessagesReader {
  readonly context: AnswerContext;
  readonly onUnknownFinish: OnUnknownFinish;
}

/**
 * Reads the answer to a request for a whole one: a `message`, or a stream in its place. Throws
 * `UpstreamFailure` for anything else.
 */
export function decodeMessages({ body }: WholeAnswer, reader: MessagesReader): ChatResult {
  if (!isJson(body)) {
    return collectStream((limits) => new MessagesStreamDecoder(reader, limits), body);
  }
  return collectAnswer(wholeEvents(new TextDecoder().decode(body), reader));
}

/** The largest event that is read; a delta has a few hundred bytes, a whole thought more. */
const eventLimitCharacters = 4 * 1024 * 1024;

/** Reads a stream of Messages as events, or a whole answer in its place, which is replayed. */
export class MessagesStreamDecoder extends AnswerDecoder {
  readonly #parser = new SseParser(eventLimitCharacters);
  readonly #reader: MessagesReader;
  readonly #answer: MessagesAnswer;

  constructor(reader: MessagesReader, limits: DecoderLimits) {
    super(limits);
    this.#reader = reader;
    this.#answer = new MessagesAnswer(reader.context, reader.onUnknownFinish);
  }

  get endedEarly(): boolean {
    return this.#answer.isCut;
  }

  protected override read(bytes: Uint8Array, events: ChatEvent[]): void {
    this.#readAll(this.#parser.push(bytes), events);
  }

  protected override readEnd(events: ChatEvent[]): void {
    this.#readAll(this.#parser.end(), events);
    if (this.isDone) return;
    this.#answer.end();
    this.finish();
  }

  protected override readWhole(json: string): readonly ChatEvent[] {
    return wholeEvents(json, this.#reader);
  }

  #readAll(found: readonly string[], events: ChatEvent[]): void {
    this.#answer.writeTo(events);
    for (const data of found) {
      const event = parseObject(data);
      if (event === undefined || !this.#answer.readEvent(event)) {
        this.skipMalformed({ mayGoOn: this.#answer.mayGoOn });
      }
      if (this.#answer.isFinished) return this.finish();
    }
  }
}

/** The events that a stream of a whole answer would have had. Throws `UpstreamFailure`. */
function wholeEvents(json: string, reader: MessagesReader): readonly ChatEvent[] {
  try {
    const events: ChatEvent[] = [];
    const answer = new MessagesAnswer(reader.context, reader.onUnknownFinish);
    answer.writeTo(events);
    answer.readWhole(parseExactly(json));
    return events;
  } catch (error) {
    const failure = answerFailure(error);
    if (!(error instanceof UpstreamFailure)) throw failure;
    throw failure.withUsage(messagesUsage(usageIn(new TextEncoder().encode(json))));
  }
}
