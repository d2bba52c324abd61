import type { ChatEvent } from "../../../../domain/chat/answer.ts";
import { brokenAnswer, UpstreamFailure } from "../../../../domain/errors/upstream-failure.ts";
import { billedTier } from "../../../../domain/money/service-tier.ts";
import { checkChoiceCount } from "../../collect-answer.ts";
import {
  isObject,
  type JsonObject,
  listOf,
  nonEmpty,
  numberOf,
  objectOf,
} from "../../../../domain/json-fields.ts";
import type { AnswerServices } from "./tool-call-tracker.ts";
import { extraFields, knownFields, tokenDetails } from "../extra-fields.ts";
import { parseAnswer, readUsage } from "../read-answer.ts";
import type { EventReader } from "../../answer-codec.ts";
import { ChoiceReader, type AnswerParts } from "./choice-reader.ts";
import { readChunk } from "./read-chunk.ts";
import { RepeatedChunk } from "./repeated-chunk.ts";

type UsageReport = Extract<ChatEvent, { type: "usage-report" }>;

/**
 * Turns the objects of one answer into events: the chunks of a stream, or a whole answer. Servers
 * may repeat or omit fields and have other indexes, but an answer must not be cut: every choice
 * needs its finish.
 */
export class AnswerReader implements EventReader {
  readonly isCut = false;
  readonly #repeated = new RepeatedChunk();
  readonly #choices = new Map<number, ChoiceReader>();
  readonly #shared: AnswerParts;
  #systemFingerprint: string | undefined;
  #serviceTier: string | undefined;
  /** Of the last chunk that names one: the first ones may repeat what was asked. */
  #servedTier: string | undefined;
  #hasStarted = false;
  #isDone = false;
  #usage: UsageReport | undefined;

  constructor(services: AnswerServices) {
    this.#shared = {
      services,
      usedIds: new Set(),
      answerExtra: undefined,
      choicesWithExtra: 0,
      unsureFinishes: [],
      isWithinThought: false,
    };
  }

  get isFinished(): boolean {
    return this.#isDone;
  }

  get mayGoOn(): boolean {
    if (!this.#hasStarted) return false;
    for (const { isWithinCall } of this.#choices.values()) if (isWithinCall) return false;
    return true;
  }

  readData(data: string, events: ChatEvent[], isError: boolean): boolean {
    if (data.trim() === "[DONE]") {
      this.end(events);
      this.#isDone = true;
      return true;
    }
    const delta = this.#repeated.read(data);
    if (delta !== undefined) {
      events.push(delta);
      return true;
    }
    const chunk = readChunk(data, isError);
    if (chunk === undefined) return false;
    const before = events.length;
    const shared = this.#shared;
    // Fields of earlier chunks wait for an event.
    const hasExtra = shared.answerExtra !== undefined || shared.choicesWithExtra > 0;
    this.#readChunk(chunk, events);
    if (shared.isWithinThought) this.#repeated.forget();
    else if (!hasExtra) this.#repeated.learn(data, events.slice(before));
    return true;
  }

  /** What an answer has cost is known even if it is broken. */
  #readChunk(chunk: JsonObject, events: ChatEvent[]): void {
    try {
      this.#readChoicesOfChunk(chunk, events);
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      throw error.withUsage(readUsage(chunk["usage"], this.#tier) ?? this.#usage?.usage);
    }
    this.#reportUsage(chunk, events);
  }

  #readChoicesOfChunk(chunk: JsonObject, events: ChatEvent[]): void {
    this.#readStart(chunk);
    const choices = listOf(chunk["choices"]) ?? [];
    for (let position = 0; position < choices.length; position += 1) {
      const choice = choices[position];
      if (!isObject(choice)) continue;
      const before = events.length;
      try {
        this.#choiceAt(numberOf(choice["index"]) ?? position).read(choice, events);
      } finally {
        if (!this.#hasStarted && events.length > before) this.#start(events, before);
      }
    }
  }

  /** A whole answer as JSON; each choice has its message, and may lack the reason of its end. */
  readWhole(json: string, events: ChatEvent[]): void {
    const answer = readWhole(json);
    this.#readChoices(answer, events);
    this.#reportUsage(answer, events);
    this.end(events);
  }

  #readChoices(answer: JsonObject, events: ChatEvent[]): void {
    this.#readStart(answer);
    this.#start(events, 0);
    const choices = listOf(answer["choices"]) ?? [];
    for (const [position, value] of choices.entries()) {
      const choice = checkWholeChoice(value);
      const index = numberOf(choice["index"]) ?? position;
      const reader = this.#choiceAt(this.#choices.has(index) ? position : index);
      const before = events.length;
      reader.read(choice, events);
      if (events.length === before && !hasContent(choice)) throw brokenAnswer("a choice is empty");
      reader.finishUnsaid(events);
    }
  }

  /**
   * The end of the answer: the ends of choices in unknown words count now, and usage after them.
   * Throws `UpstreamFailure` if it was cut.
   */
  end(events: ChatEvent[]): void {
    if (!this.#isWhole) {
      const failure = brokenAnswer("the upstream's stream ended before the answer was finished");
      throw failure.withUsage(this.#usage?.usage);
    }
    const finishes = this.#shared.unsureFinishes;
    if (finishes.length === 0) return;
    this.#shared.unsureFinishes = [];
    if (!this.#hasStarted) this.#start(events, events.length);
    events.push(...finishes);
    if (this.#usage !== undefined) events.push(this.#withLateExtra(this.#usage));
    this.#usage = undefined;
  }

  /** Some servers begin with a chunk without these fields. */
  #readStart(chunk: JsonObject): void {
    const extra = extraFields(chunk, knownFields.answer);
    if (extra !== undefined) this.#shared.answerExtra = extra;
    this.#servedTier = nonEmpty(chunk["service_tier"]) ?? this.#servedTier;
    if (this.#hasStarted) return;
    this.#systemFingerprint ??= nonEmpty(chunk["system_fingerprint"]);
    this.#serviceTier ??= nonEmpty(chunk["service_tier"]);
  }

  #start(events: ChatEvent[], at: number): void {
    this.#hasStarted = true;
    const systemFingerprint = this.#systemFingerprint;
    const serviceTier = this.#serviceTier;
    events.splice(at, 0, { type: "answer-start", systemFingerprint, serviceTier });
  }

  /**
   * Held back until there is content, so that a failure right after it can still be retried, and
   * behind the end of a choice that waits for the end of the answer.
   */
  #reportUsage(chunk: JsonObject, events: ChatEvent[]): void {
    const counts = chunk["usage"] ?? usageElsewhere(chunk);
    const usage = readUsage(counts, this.#tier);
    if (usage !== undefined) {
      const details = tokenDetails(counts);
      this.#usage = { type: "usage-report", usage, ...(details && { details }) };
    }
    if (this.#usage === undefined || !this.#hasStarted) return;
    if (this.#shared.unsureFinishes.length > 0) return;
    events.push(this.#withLateExtra(this.#usage));
    this.#usage = undefined;
  }

  /** Fields after the end of all choices, as xAI's citations, go with the usage they stand beside. */
  #withLateExtra(report: UsageReport): UsageReport {
    const { answerExtra: extra } = this.#shared;
    if (extra === undefined || !this.#isWhole) return report;
    this.#shared.answerExtra = undefined;
    return { ...report, extra };
  }

  get #tier(): string | undefined {
    return billedTier(this.#servedTier, this.#shared.services.askedTier);
  }

  get #isWhole(): boolean {
    for (const { isFinished } of this.#choices.values()) if (!isFinished) return false;
    return this.#choices.size > 0;
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

/** Groq's streams have their usage in a field of its own, Moonshot's in the only choice. */
function usageElsewhere({ x_groq: groq, choices }: JsonObject): unknown {
  const [choice, other] = listOf(choices) ?? [];
  const ofChoice = other === undefined ? objectOf(choice)?.["usage"] : undefined;
  return objectOf(groq)?.["usage"] ?? ofChoice;
}

/** A whole `chat.completion`. Throws `UpstreamFailure` for errors and for anything else. */
function readWhole(json: string): JsonObject {
  const answer = parseAnswer(json, "choices");
  const choices = listOf(answer["choices"]) ?? [];
  if (choices.length === 0) throw brokenAnswer("the answer has no choices");
  checkChoiceCount(choices.length);
  return answer;
}

/** A choice of a whole answer. Servers may omit fields, but not the message. */
function checkWholeChoice(value: unknown): JsonObject {
  const choice = objectOf(value);
  const message = choice && messageOf(choice);
  if (choice === undefined || message === undefined) throw brokenAnswer("a choice has no message");
  const calls = message["tool_calls"] ?? [];
  if (!Array.isArray(calls)) throw brokenAnswer("the tool calls of a message are not a list");
  if (!calls.every(isObject)) throw brokenAnswer("a tool call is not an object");
  return choice;
}

/** Whether a choice has content, even if it is empty. */
function hasContent(choice: JsonObject): boolean {
  return (messageOf(choice)?.["content"] ?? undefined) !== undefined;
}

function messageOf(choice: JsonObject): JsonObject | undefined {
  return objectOf(choice["message"]) ?? objectOf(choice["delta"]);
}
