import type { ChatEvent, ChatResult } from "../../domain/chat/answer.ts";
import type { Conversation } from "../../domain/chat/conversation.ts";
import { brokenAnswer, UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import { countOf, parseObject, usageIn } from "../../domain/json-fields.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import type {
  AnswerHeaders,
  ChatCodec,
  DecoderLimits,
  EncodedStreamRequest,
  StreamDecoder,
  WholeAnswer,
} from "../adapter.ts";
import { collectAnswer, collectStream } from "./collect-answer.ts";
import { SseParser } from "./sse-parser.ts";
import { isJson, WholeBody } from "./whole-body.ts";

/** Cuts the bytes of a stream into the data of its events. */
interface EventParser<Data> {
  push(bytes: Uint8Array): readonly Data[];
  end(): readonly Data[];
  /** Whether an event was named `error`. */
  readonly hasNamedError?: boolean;
  /** What is wrong with the bytes after those that were read. */
  readonly failure?: UpstreamFailure | undefined;
}

/** Turns one answer into events. Methods throw `UpstreamFailure` for errors and cut answers. */
export interface EventReader<Data = string> {
  /** An event of a stream by its data; false if it is malformed. `isError`: one was named `error`. */
  readData(data: Data, events: ChatEvent[], isError: boolean): boolean;
  readWhole(json: string, events: ChatEvent[], headers?: AnswerHeaders): void;
  /** A stream has no more events. */
  end(events: ChatEvent[]): void;
  readonly isFinished: boolean;
  /** The answer is complete although the provider still writes. */
  readonly isCut: boolean;
  /** Whether a malformed event may be skipped: not before content, not inside a tool call. */
  readonly mayGoOn: boolean;
}

/** How a wire's answers are read. */
export interface AnswerWire<Data = string> {
  newParser(): EventParser<Data>;
  newReader(): EventReader<Data>;
  /** Of the field `usage` in a body that cannot be read otherwise. */
  usageOf(usage: unknown): TokenUsage | undefined;
}

interface Asked<Data> extends Omit<EncodedStreamRequest<ChatEvent>, "newDecoder" | "tagEvents"> {
  readonly wire: AnswerWire<Data>;
}

/** Whole and streamed answers of one wire. `ask` writes a request to the model's id. */
export function createAnswerCodec<Data>(
  ask: (conversation: Conversation, model: string) => Asked<Data>,
): Pick<ChatCodec, "encode" | "encodeStream"> {
  return {
    encode(conversation, model) {
      const { wire, request, adjusted } = ask(streamed(conversation, false), model);
      return {
        request,
        adjusted,
        decode: ({ body, headers }) => decodeAnswer(body, wire, headers),
        usageIn: (body) => wire.usageOf(usageIn(body)),
      };
    },
    encodeStream(conversation, model) {
      const asked = ask(streamed(conversation, true), model);
      const { wire, request, adjusted, isAnsweredWhole } = asked;
      const newDecoder = (limits: DecoderLimits): EventDecoder<Data> =>
        new EventDecoder(wire, limits);
      return { request, adjusted, isAnsweredWhole: isAnsweredWhole === true, newDecoder };
    },
  };
}

/** Most are as they are asked for. */
function streamed(conversation: Conversation, isStreamed: boolean): Conversation {
  return conversation.isStreamed === isStreamed ? conversation : { ...conversation, isStreamed };
}

const utf8 = new TextDecoder();

/** A whole answer, or a stream in its place. Throws `UpstreamFailure` for anything else. */
export function decodeAnswer<Data>(
  body: Uint8Array,
  wire: AnswerWire<Data>,
  headers?: AnswerHeaders,
): ChatResult {
  if (isJson(body)) return collectAnswer(wholeEvents(utf8.decode(body), wire, headers));
  return collectStream((limits) => new EventDecoder(wire, limits), body);
}

/** The events that a stream of a whole answer would have had. */
function wholeEvents<Data>(
  json: string,
  wire: AnswerWire<Data>,
  headers?: AnswerHeaders,
): ChatEvent[] {
  const events: ChatEvent[] = [];
  try {
    wire.newReader().readWhole(json, events, headers);
  } catch (error) {
    if (!(error instanceof UpstreamFailure)) throw answerFailure(error);
    throw error.withUsage(wire.usageOf(usageIn(new TextEncoder().encode(json))));
  }
  return events;
}

/** The largest event that is read: the last one of Responses has the whole answer. */
const eventLimitCharacters = 16 * 1024 * 1024;

export const newSseParser = (): SseParser => new SseParser(eventLimitCharacters);

/**
 * Reads a stream, or a whole answer in its place, which is replayed. Nothing is read after the end or
 * a failure, and malformed events are counted.
 */
export class EventDecoder<Data> implements StreamDecoder<ChatEvent> {
  readonly #body: WholeBody;
  readonly #mostMalformed: number;
  readonly #parser: EventParser<Data>;
  readonly #wire: AnswerWire<Data>;
  readonly #reader: EventReader<Data>;
  malformedEvents = 0;
  isDone = false;
  failure: UpstreamFailure | undefined;

  constructor(wire: AnswerWire<Data>, limits: DecoderLimits) {
    this.#body = new WholeBody(limits);
    this.#mostMalformed = limits.malformedEvents;
    this.#parser = wire.newParser();
    this.#wire = wire;
    this.#reader = wire.newReader();
  }

  get endedEarly(): boolean {
    return this.#reader.isCut;
  }

  push(bytes: Uint8Array): readonly ChatEvent[] {
    const events: ChatEvent[] = [];
    if (this.isDone || this.failure !== undefined) return events;
    try {
      if (!this.#body.take(bytes)) this.#readAll(this.#parser.push(bytes), events);
    } catch (error) {
      this.failure = answerFailure(error);
    }
    return events;
  }

  end(): readonly ChatEvent[] {
    let events: ChatEvent[] = [];
    if (this.isDone || this.failure !== undefined) return events;
    try {
      const json = this.#body.end();
      // Of an answer that is not whole, nothing is replayed: another target can still answer.
      if (json !== undefined) events = wholeEvents(json, this.#wire);
      else {
        this.#readAll(this.#parser.end(), events);
        if (!this.isDone) this.#reader.end(events);
      }
      this.isDone = true;
    } catch (error) {
      this.failure = answerFailure(error);
    }
    return events;
  }

  #readAll(found: readonly Data[], events: ChatEvent[]): void {
    const reader = this.#reader;
    const parser = this.#parser;
    for (const data of found) {
      if (!reader.readData(data, events, parser.hasNamedError === true)) this.#skip(reader.mayGoOn);
      this.isDone = reader.isFinished || reader.isCut;
      if (this.isDone) return;
    }
    if (parser.failure !== undefined) throw parser.failure;
  }

  /** The caller does not get the content of a malformed event. */
  #skip(mayGoOn: boolean): void {
    this.malformedEvents += 1;
    if (mayGoOn && this.malformedEvents <= this.#mostMalformed) return;
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
