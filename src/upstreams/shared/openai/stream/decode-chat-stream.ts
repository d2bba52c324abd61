import type { ChatEvent } from "../../../../domain/chat/answer.ts";
import { UpstreamFailure } from "../../../../domain/errors/upstream-failure.ts";
import type { DecoderLimits } from "../../../adapter.ts";
import { AnswerDecoder } from "../../answer-decoder.ts";
import { SseParser } from "../../sse-parser.ts";
import { isObject, listOf, objectOf, usageIn } from "../../../../domain/json-fields.ts";
import type { AnswerServices } from "./tool-call-tracker.ts";
import { readUsage } from "../read-answer.ts";
import { AnswerReader } from "./answer-reader.ts";
import { readChunk } from "./read-chunk.ts";
import { readJsonText } from "../../../../domain/json-object.ts";

/** The largest event that is read; a delta has a few hundred bytes, a whole tool call more. */
const eventLimitCharacters = 4 * 1024 * 1024;

/**
 * Reads the bytes of an answer as events: a stream of `chat.completion.chunk`s, or a whole
 * `chat.completion` in its place, which is replayed.
 */
export class ChatStreamDecoder extends AnswerDecoder {
  readonly #parser = new SseParser(eventLimitCharacters);
  readonly #repeated = new RepeatedChunk();
  readonly #answer: AnswerReader;

  constructor(services: AnswerServices, limits: DecoderLimits) {
    super(limits);
    this.#answer = new AnswerReader(services);
  }

  protected override read(bytes: Uint8Array, events: ChatEvent[]): void {
    this.#readAll(this.#parser.push(bytes), events);
  }

  protected override readEnd(events: ChatEvent[]): void {
    this.#readAll(this.#parser.end(), events);
    if (!this.isDone) this.#answer.end(events);
  }

  protected override readWhole(json: string): readonly ChatEvent[] {
    const whole: ChatEvent[] = [];
    try {
      this.#answer.readWhole(json, whole);
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      throw error.withUsage(readUsage(usageIn(new TextEncoder().encode(json))));
    }
    return whole;
  }

  #readAll(found: readonly string[], events: ChatEvent[]): void {
    for (const data of found) {
      this.#readData(data, events);
      if (this.isDone) return;
    }
  }

  #readData(data: string, events: ChatEvent[]): void {
    if (data.trim() !== "[DONE]") return this.#readEvent(data, events);
    this.#answer.end(events);
    this.finish();
  }

  #readEvent(data: string, events: ChatEvent[]): void {
    const delta = this.#repeated.read(data);
    if (delta !== undefined) return void events.push(delta);
    const chunk = readChunk(data, this.#parser.hasNamedError);
    if (chunk !== undefined) {
      const before = events.length;
      const { hasExtra } = this.#answer;
      this.#answer.readChunk(chunk, events);
      if (this.#answer.isWithinThought) this.#repeated.forget();
      else if (!hasExtra) this.#repeated.learn(data, events.slice(before));
      return;
    }
    // Before any content another target can still answer; a tool call whose arguments are
    // incomplete could do harm.
    this.skipMalformed({ mayGoOn: this.#answer.hasStarted && !this.#answer.isWithinCall });
  }
}

type TextDelta = Extract<ChatEvent, { type: "text-delta" }>;

/**
 * Limit on attempts to learn the form: servers that vary other fields, such as padding, never
 * repeat it.
 */
const mostLessons = 8;
const contentStart = /"content"\s*:\s*"/;

/**
 * Reads chunks that differ from an earlier one only in their text, as most chunks of a stream do:
 * the rest is compared, and only the text is parsed.
 */
export class RepeatedChunk {
  #lessons = 0;
  /** The JSON before and after the text; undefined until it is known. */
  #known:
    { readonly before: string; readonly after: string; readonly event: TextDelta } | undefined;

  /** The next text may have to be read in another way. */
  forget(): void {
    this.#known = undefined;
  }

  /** Undefined for data that must be parsed as a whole. */
  read(data: string): TextDelta | undefined {
    if (this.#known === undefined) return undefined;
    const { before, after, event } = this.#known;
    const end = data.length - after.length;
    if (end <= before.length || !data.startsWith(before) || !data.endsWith(after)) return undefined;
    const text = readJsonText(data.slice(before.length, end));
    // An empty text has no event.
    if (text === undefined || text === "") return undefined;
    const { choice, extra } = event;
    const delta: TextDelta = { type: "text-delta", choice, text };
    return extra === undefined ? delta : { ...delta, extra };
  }

  /**
   * Learns from a chunk in the middle of an answer; `events` are all events that `data` contains,
   * with no field of an earlier chunk.
   */
  learn(data: string, events: readonly ChatEvent[]): void {
    const [event] = events;
    if (this.#lessons >= mostLessons || events.length !== 1) return;
    if (event?.type !== "text-delta" || event.logprobs !== undefined) return;
    this.#lessons += 1;
    const found = contentStart.exec(data);
    const literal = JSON.stringify(event.text);
    const at = found === null ? -1 : found.index + found[0].length - 1;
    if (!data.startsWith(literal, at)) return;
    const before = data.slice(0, at);
    const after = data.slice(at + literal.length);
    // The match may be another field of the same name.
    if (textOf(`${before}"${otherText}"${after}`) !== otherText) return;
    this.#known = { before, after, event };
  }
}

const otherText = "another text";

/** The field that holds the text of a chunk. */
function textOf(data: string): unknown {
  const value: unknown = JSON.parse(data);
  const choice = isObject(value) ? listOf(value["choices"])?.[0] : undefined;
  return isObject(choice) ? objectOf(choice["delta"])?.["content"] : undefined;
}
