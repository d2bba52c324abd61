import type {
  ChatEvent,
  ChunkExtra,
  ExtraFields,
  FinishReason,
} from "../../../../domain/chat/answer.ts";
import {
  finishReasonOf,
  interruptedAnswer,
  isNoFinishWord,
  readFinishWord,
  type FinishMeaning,
} from "../../finish-words.ts";
import {
  type JsonObject,
  listOf,
  nonEmpty,
  objectOf,
  textOf,
} from "../../../../domain/json-fields.ts";
import { MarkedThoughts } from "./marked-thoughts.ts";
import type { AnswerServices } from "./tool-call-tracker.ts";
import { extraFields, knownFields } from "../extra-fields.ts";
import { readContent, readThoughts } from "../read-answer.ts";
import { readArguments, ToolCallTracker } from "./tool-call-tracker.ts";

/** What all choices of an answer share. */
export interface AnswerParts {
  readonly services: AnswerServices;
  readonly usedIds: Set<string>;
  /** Fields beside the choices that the next event takes along. */
  answerExtra: ExtraFields | undefined;
  /** How many choices have fields that wait for an event. */
  choicesWithExtra: number;
  /** The ends of choices in unknown words: they count if the answer ends properly. */
  unsureFinishes: ChatEvent[];
  /** Whether the next piece may begin with the rest of a thought. */
  isWithinThought: boolean;
}

interface Finish {
  readonly word: string;
  readonly meaning: Exclude<FinishMeaning, "interrupted">;
}

/** Reads one choice of an answer: its deltas, or its message. */
export class ChoiceReader {
  readonly #index: number;
  readonly #shared: AnswerParts;
  readonly #marked = new MarkedThoughts();
  /** Undefined until the first call. */
  #tools: ToolCallTracker | undefined;
  #hasText = false;
  #hasFunctionCall = false;
  #choiceExtra: ExtraFields | undefined;
  #finishReason: FinishReason | undefined;

  constructor(index: number, shared: AnswerParts) {
    this.#index = index;
    this.#shared = shared;
  }

  get isFinished(): boolean {
    return this.#finishReason !== undefined;
  }

  /** Whether a call has begun and the choice has not ended. */
  get isWithinCall(): boolean {
    return !this.isFinished && this.#hasCall();
  }

  /** Throws `UpstreamFailure` for a choice that was interrupted. */
  read(choice: JsonObject, events: ChatEvent[]): void {
    // Some servers stream their chunks in the form of a whole answer.
    const written = objectOf(choice["delta"]) ?? objectOf(choice["message"]);
    const said = written && this.#marked.apart(written);
    this.#shared.isWithinThought = this.#marked.isOpen;
    const finish = this.#readFinish(choice);
    this.#keepExtra(extraFields(choice, knownFields.choice));
    if (said !== undefined) {
      this.#readText(said, { logprobs: objectOf(choice["logprobs"]), isLast: !!finish, events });
      this.#readToolCalls(listOf(said["tool_calls"]), events);
      this.#readFunctionCall(said, events);
    }
    if (finish !== undefined) this.#finish(finish, events);
  }

  /** The end of a whole choice that does not say why it ended: the usual reason. */
  finishUnsaid(events: ChatEvent[]): void {
    if (!this.isFinished) this.#finish({ word: "stop", meaning: "stop" }, events);
  }

  #readFinish(choice: JsonObject): Finish | undefined {
    const reason = choice["finish_reason"] ?? "";
    // SGLang's own reasons are objects with a type. Other values are as good as an unknown word.
    const word = textOf(objectOf(reason)?.["type"] ?? reason) ?? typeof reason;
    if (this.isFinished || isNoFinishWord(word)) return undefined;
    const meaning = readFinishWord(word);
    if (meaning === "interrupted") throw interruptedAnswer(word);
    return { word, meaning };
  }

  #readText(said: JsonObject, chunk: TextChunk): void {
    const { events } = chunk;
    const choice = this.#index;
    const { content } = said;
    const reasoning =
      nonEmpty(said["reasoning_content"]) ?? nonEmpty(said["reasoning"]) ?? readThoughts(content);
    if (reasoning !== undefined) events.push({ type: "reasoning-delta", choice, text: reasoning });
    const refusal = nonEmpty(said["refusal"]);
    if (refusal !== undefined) {
      this.#hasText = true;
      const logprobs = readLogprobs(chunk.logprobs?.["refusal"]);
      events.push({ type: "refusal-delta", choice, text: refusal, ...logprobs });
    }
    const text = readContent(content) ?? "";
    const logprobs = readLogprobs(chunk.logprobs?.["content"]);
    const message = extraFields(said, knownFields.message);
    if (text === "" && logprobs === undefined && message === undefined) return;
    this.#hasText ||= text !== "" || message !== undefined;
    const extra = chunk.isLast ? message && { message } : this.#takeExtra(message);
    const delta = { type: "text-delta", choice, text, ...logprobs } as const;
    events.push(extra === undefined ? delta : { ...delta, extra });
  }

  #readToolCalls(calls: readonly unknown[] | undefined, events: ChatEvent[]): void {
    if (calls === undefined || calls.length === 0) return;
    const { services, usedIds } = this.#shared;
    this.#tools ??= new ToolCallTracker(this.#index, services, usedIds);
    this.#tools.read(calls, events);
  }

  #readFunctionCall(said: JsonObject, events: ChatEvent[]): void {
    const call = objectOf(said["function_call"]);
    if (call === undefined) return;
    const choice = this.#index;
    const name = textOf(call["name"]) ?? "";
    if (name !== "" && !this.#hasFunctionCall) {
      this.#hasFunctionCall = true;
      events.push({ type: "function-call-start", choice, name });
    }
    const text = readArguments(call["arguments"]);
    if (text !== "") events.push({ type: "function-call-delta", choice, arguments: text });
  }

  #finish({ word, meaning }: Finish, events: ChatEvent[]): void {
    const choice = this.#index;
    const thought = this.#marked.end();
    if (thought !== "") events.push({ type: "reasoning-delta", choice, text: thought });
    this.#tools?.finish(events);
    if (meaning === "unknown") this.#checkUnknown(word);
    const calls = this.#hasFunctionCall ? "function_call" : undefined;
    this.#finishReason = finishReasonOf(meaning, this.#hasToolCall() ? "tool_calls" : calls);
    const extra = this.#takeExtra(undefined);
    const event = {
      type: "choice-finish",
      choice,
      finishReason: this.#finishReason,
      ...(extra !== undefined && { extra }),
    } as const;
    (meaning === "unknown" ? this.#shared.unsureFinishes : events).push(event);
  }

  /** An unknown word is believed if there is something that may be whole. */
  #checkUnknown(word: string): void {
    this.#shared.services.onUnknownFinish(word);
    const hasContent = this.#hasText || this.#hasCall();
    if (!hasContent || this.#tools?.hasHalfCall === true) throw interruptedAnswer(word);
  }

  #hasCall(): boolean {
    return this.#hasToolCall() || this.#hasFunctionCall;
  }

  #hasToolCall(): boolean {
    return this.#tools !== undefined && this.#tools.count > 0;
  }

  #keepExtra(extra: ExtraFields | undefined): void {
    if (extra === undefined) return;
    if (this.#choiceExtra === undefined) this.#shared.choicesWithExtra += 1;
    this.#choiceExtra = extra;
  }

  /** The fields that wait for an event, and these of its message. */
  #takeExtra(message: ExtraFields | undefined): ChunkExtra | undefined {
    const choice = this.#choiceExtra;
    const { answerExtra: answer } = this.#shared;
    if (answer === undefined && choice === undefined && message === undefined) return undefined;
    if (choice !== undefined) this.#shared.choicesWithExtra -= 1;
    this.#choiceExtra = undefined;
    this.#shared.answerExtra = undefined;
    return { answer, choice, message };
  }
}

interface TextChunk {
  readonly logprobs: JsonObject | undefined;
  /** Whether the choice ends with it. */
  readonly isLast: boolean;
  readonly events: ChatEvent[];
}

function readLogprobs(value: unknown): { readonly logprobs: readonly unknown[] } | undefined {
  const logprobs = listOf(value) ?? [];
  return logprobs.length > 0 ? { logprobs } : undefined;
}
