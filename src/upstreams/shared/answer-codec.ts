import type { ChatEvent, ChatResult } from "../../domain/chat/answer.ts";
import type { Conversation } from "../../domain/chat/conversation.ts";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import { usageIn } from "../../domain/json-fields.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import type { AnswerHeaders, ChatCodec, DecoderLimits, EncodedStreamRequest } from "../adapter.ts";
import { AnswerDecoder, answerFailure } from "./answer-decoder.ts";
import { collectAnswer, collectStream } from "./collect-answer.ts";
import { SseParser } from "./sse-parser.ts";
import { isJson } from "./whole-body.ts";

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
): readonly ChatEvent[] {
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

/** Reads a stream, or a whole answer in its place, which is replayed. */
export class EventDecoder<Data> extends AnswerDecoder {
  readonly #parser: EventParser<Data>;
  readonly #wire: AnswerWire<Data>;
  readonly #reader: EventReader<Data>;

  constructor(wire: AnswerWire<Data>, limits: DecoderLimits) {
    super(limits);
    this.#parser = wire.newParser();
    this.#wire = wire;
    this.#reader = wire.newReader();
  }

  get endedEarly(): boolean {
    return this.#reader.isCut;
  }

  protected override read(bytes: Uint8Array, events: ChatEvent[]): void {
    this.#readAll(this.#parser.push(bytes), events);
  }

  protected override readEnd(events: ChatEvent[]): void {
    this.#readAll(this.#parser.end(), events);
    if (this.isDone) return;
    this.#reader.end(events);
    this.finish();
  }

  protected override readWhole(json: string): readonly ChatEvent[] {
    return wholeEvents(json, this.#wire);
  }

  #readAll(found: readonly Data[], events: ChatEvent[]): void {
    const reader = this.#reader;
    const parser = this.#parser;
    for (const data of found) {
      const isSound = reader.readData(data, events, parser.hasNamedError === true);
      if (!isSound) this.skipMalformed(reader);
      if (reader.isFinished || reader.isCut) return this.finish();
    }
    if (parser.failure !== undefined) throw parser.failure;
  }
}
