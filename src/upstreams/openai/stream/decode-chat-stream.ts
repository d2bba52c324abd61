import type { ChatEvent } from "../../../domain/chat/chat.ts";
import { UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";
import type { DecoderLimits, StreamDecoder } from "../../adapter.ts";
import { checkChoiceCount } from "../../shared/answer-bounds.ts";
import { inPieces } from "../../shared/in-pieces.ts";
import { isObject, listOf, nonEmpty, numberOf, type JsonObject } from "../../shared/json-fields.ts";
import { MalformedEvents } from "../../shared/malformed-events.ts";
import { SseParser } from "../../shared/sse-parser.ts";
import { WholeBody } from "../../shared/whole-body.ts";
import type { AnswerServices } from "../answer-services.ts";
import { extraFields, knownFields, tokenDetails } from "../extra-fields.ts";
import { brokenAnswer, readUsage } from "../read-answer.ts";
import { ChoiceReader, type SharedParts } from "./choice-reader.ts";
import { readChunk } from "./read-chunk.ts";
import { RepeatedChunk } from "./repeated-chunk.ts";
import { checkWholeChoice, hasContent, readWhole } from "./whole-choices.ts";

/** The largest event that is read; a delta has a few hundred bytes, a whole tool call more. */
const eventLimitCharacters = 4 * 1024 * 1024;

type UsageReport = Extract<ChatEvent, { type: "usage-report" }>;

/**
 * Reads an answer as events: a stream of `chat.completion.chunk`s, or a whole `chat.completion`,
 * which is replayed. Servers may repeat or omit fields and have other indexes, but an answer must
 * not be cut: every choice needs its finish.
 */
export class ChatStreamDecoder implements StreamDecoder<ChatEvent> {
  readonly #parser = new SseParser(eventLimitCharacters);
  readonly #body: WholeBody;
  readonly #malformed: MalformedEvents;
  readonly #repeated = new RepeatedChunk();
  readonly #choices = new Map<number, ChoiceReader>();
  readonly #shared: SharedParts;
  #systemFingerprint: string | undefined;
  #serviceTier: string | undefined;
  #hasStarted = false;
  #unreportedUsage: UsageReport | undefined;
  #isDone = false;
  #failure: UpstreamFailure | undefined;

  constructor(services: AnswerServices, limits: DecoderLimits) {
    this.#body = new WholeBody(limits);
    this.#malformed = new MalformedEvents(limits.malformedEvents);
    this.#shared = { services, usedIds: new Set(), answerExtra: undefined };
  }

  get failure(): UpstreamFailure | undefined {
    return this.#failure;
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  get malformedEvents(): number {
    return this.#malformed.count;
  }

  push(bytes: Uint8Array): readonly ChatEvent[] {
    return this.#read((events) => {
      if (!this.#body.take(bytes)) this.#readAll(this.#parser.push(bytes), events);
    });
  }

  end(): readonly ChatEvent[] {
    const json = this.#body.end();
    const events = this.#readEnd(json);
    return json === undefined ? events : inPieces(events);
  }

  /** The events of an answer that has been received, with its texts in one piece. */
  readReceived(body: Uint8Array): readonly ChatEvent[] {
    return [...this.push(body), ...this.#readEnd(this.#body.end())];
  }

  #readEnd(json: string | undefined): readonly ChatEvent[] {
    return this.#read((events) => {
      if (json !== undefined) return this.#readWhole(json, events);
      this.#readAll(this.#parser.end(), events);
      if (!this.#isDone) this.#end(events);
    });
  }

  #read(read: (events: ChatEvent[]) => void): readonly ChatEvent[] {
    const events: ChatEvent[] = [];
    if (this.#isDone || this.#failure !== undefined) return events;
    try {
      read(events);
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      this.#failure = error;
    }
    return events;
  }

  #readAll(found: readonly string[], events: ChatEvent[]): void {
    for (const data of found) {
      this.#readData(data, events);
      if (this.#isDone) return;
    }
  }

  #readData(data: string, events: ChatEvent[]): void {
    if (data.trim() !== "[DONE]") return this.#readEvent(data, events);
    this.#end(events);
    this.#isDone = true;
  }

  #readEvent(data: string, events: ChatEvent[]): void {
    const delta = this.#repeated.read(data);
    if (delta !== undefined) return void events.push(delta);
    const chunk = readChunk(data, this.#parser);
    if (chunk !== undefined) {
      const before = events.length;
      const hadExtra = this.#hasExtra();
      this.#readChunk(chunk, events);
      if (!hadExtra) this.#repeated.learn(data, events.slice(before));
      return;
    }
    // Before any content another target can still answer; a tool call whose arguments are
    // incomplete could do harm.
    this.#malformed.skip({ mayGoOn: this.#hasStarted && !this.#isWithinCall() });
  }

  #isWithinCall(): boolean {
    return [...this.#choices.values()].some(({ isWithinCall }) => isWithinCall);
  }

  /** Whether fields of earlier chunks wait for an event. */
  #hasExtra(): boolean {
    if (this.#shared.answerExtra !== undefined) return true;
    for (const { hasExtra } of this.#choices.values()) if (hasExtra) return true;
    return false;
  }

  /** The end of a stream: the ends of choices in unknown words count now, and usage after them. */
  #end(events: ChatEvent[]): void {
    const choices = [...this.#choices.values()];
    if (choices.length === 0 || !choices.every(({ isFinished }) => isFinished)) throw cutShort();
    for (const choice of choices) {
      const finish = choice.takeUnsureFinish();
      if (finish !== undefined) this.#push([finish], events);
    }
    if (this.#unreportedUsage !== undefined) events.push(this.#unreportedUsage);
    this.#unreportedUsage = undefined;
  }

  #readChunk(chunk: JsonObject, events: ChatEvent[]): void {
    this.#readStart(chunk);
    const choices = listOf(chunk["choices"]) ?? [];
    choices.forEach((choice, position) => {
      if (!isObject(choice)) return;
      const found: ChatEvent[] = [];
      try {
        this.#choiceAt(numberOf(choice["index"]) ?? position).read(choice, found);
      } finally {
        this.#push(found, events);
      }
    });
    this.#reportUsage(chunk, events);
  }

  /** A whole answer; each choice has its message, and may lack the reason of its end. */
  #readWhole(json: string, events: ChatEvent[]): void {
    const answer = readWhole(json);
    this.#readStart(answer);
    const found: ChatEvent[] = [];
    const choices = listOf(answer["choices"]) ?? [];
    for (const [position, value] of choices.entries()) {
      const choice = checkWholeChoice(value);
      const index = numberOf(choice["index"]) ?? position;
      const reader = this.#choiceAt(this.#choices.has(index) ? position : index);
      const before = found.length;
      reader.read(choice, found);
      if (found.length === before && !hasContent(choice)) throw brokenAnswer("a choice is empty");
      reader.finishUnsaid(found);
    }
    this.#push(found, events);
    this.#reportUsage(answer, events);
    this.#end(events);
    this.#isDone = true;
  }

  /** Some servers begin with a chunk without these fields. */
  #readStart(chunk: JsonObject): void {
    this.#shared.answerExtra = extraFields(chunk, knownFields.answer) ?? this.#shared.answerExtra;
    if (this.#hasStarted) return;
    this.#systemFingerprint ??= nonEmpty(chunk["system_fingerprint"]);
    this.#serviceTier ??= nonEmpty(chunk["service_tier"]);
  }

  #push(found: readonly ChatEvent[], events: ChatEvent[]): void {
    if (found.length === 0) return;
    if (!this.#hasStarted) {
      this.#hasStarted = true;
      events.push({
        type: "answer-start",
        systemFingerprint: this.#systemFingerprint,
        serviceTier: this.#serviceTier,
      });
    }
    for (const event of found) events.push(event);
  }

  /**
   * Held back until there is content, so that a failure right after it can still be retried, and
   * behind the end of a choice that waits for the end of the answer.
   */
  #reportUsage(chunk: JsonObject, events: ChatEvent[]): void {
    const usage = readUsage(chunk["usage"]);
    if (usage !== undefined) {
      const details = tokenDetails(chunk["usage"]);
      this.#unreportedUsage = { type: "usage-report", usage, ...(details && { details }) };
    }
    if (this.#unreportedUsage === undefined || !this.#hasStarted) return;
    for (const { hasUnsureFinish } of this.#choices.values()) if (hasUnsureFinish) return;
    events.push(this.#unreportedUsage);
    this.#unreportedUsage = undefined;
  }

  #choiceAt(index: number): ChoiceReader {
    const known = this.#choices.get(index);
    if (known !== undefined) return known;
    checkChoiceCount(this.#choices.size + 1);
    const choice = new ChoiceReader(index, this.#shared);
    this.#choices.set(index, choice);
    return choice;
  }
}

function cutShort(): UpstreamFailure {
  return brokenAnswer("the upstream's stream ended before the answer was finished");
}
