import type { ChatEvent, FinishReason } from "../../../domain/chat/chat.ts";
import { UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import type { DecoderLimits, StreamDecoder } from "../../adapter.ts";
import { checkChoiceCount } from "../../shared/answer-bounds.ts";
import { JsonBody } from "../../shared/json-body.ts";
import {
  isObject,
  listOf,
  nonEmpty,
  numberOf,
  objectOf,
  textOf,
} from "../../shared/json-fields.ts";
import type { JsonObject } from "../../shared/json-fields.ts";
import { MalformedEvents } from "../../shared/malformed-events.ts";
import { SseParser } from "../../shared/sse-parser.ts";
import {
  brokenAnswer,
  parseAnswer,
  readContent,
  readFinishReason,
  readUsage,
} from "../read-answer.ts";
import { readChunk } from "./read-chunk.ts";
import { RepeatedChunk } from "./repeated-chunk.ts";
import { ToolCallTracker } from "./tool-call-tracker.ts";

/** The largest event that is read; a delta has a few hundred bytes, a whole tool call more. */
const eventLimitCharacters = 4 * 1024 * 1024;

interface ChoiceState {
  readonly tools: ToolCallTracker;
  hasFunctionCall: boolean;
  finishReason: FinishReason | undefined;
}

/**
 * Reads a stream of `chat.completion.chunk`s as events. Servers may repeat or omit fields and have
 * other indexes, but an answer must not be cut: every choice needs its finish.
 */
export class ChatStreamDecoder implements StreamDecoder<ChatEvent> {
  readonly #parser = new SseParser(eventLimitCharacters);
  readonly #jsonBody = new JsonBody();
  readonly #malformed: MalformedEvents;
  readonly #repeated = new RepeatedChunk();
  readonly #choices = new Map<number, ChoiceState>();
  #systemFingerprint: string | undefined;
  #serviceTier: string | undefined;
  #hasStarted = false;
  #unreportedUsage: TokenUsage | undefined;
  readonly #newToolCallId: () => string;
  #isDone = false;
  #failure: UpstreamFailure | undefined;

  constructor(newToolCallId: () => string, { malformedEvents }: DecoderLimits) {
    this.#newToolCallId = newToolCallId;
    this.#malformed = new MalformedEvents(malformedEvents);
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
    if (this.#jsonBody.take(bytes)) return [];
    return this.#read(() => this.#parser.push(bytes));
  }

  end(): readonly ChatEvent[] {
    const { text } = this.#jsonBody;
    if (text !== undefined) return this.#read(() => refuseBody(text));
    const events = this.#read(() => this.#parser.end());
    if (!this.#isDone) this.#failure ??= this.#whyNotWhole();
    return events;
  }

  #read(parse: () => readonly string[]): readonly ChatEvent[] {
    const events: ChatEvent[] = [];
    try {
      for (const data of parse()) {
        if (this.#isDone || this.#failure !== undefined) break;
        this.#readData(data, events);
      }
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      this.#failure = error;
    }
    return events;
  }

  #readData(data: string, events: ChatEvent[]): void {
    if (data.trim() !== "[DONE]") return this.#readEvent(data, events);
    this.#failure = this.#whyNotWhole();
    this.#isDone = this.#failure === undefined;
  }

  #readEvent(data: string, events: ChatEvent[]): void {
    const delta = this.#repeated.read(data);
    if (delta !== undefined) return void events.push(delta);
    const chunk = readChunk(data, this.#parser);
    if (chunk !== undefined) {
      const before = events.length;
      this.#readChunk(chunk, events);
      return this.#repeated.learn(data, events.slice(before));
    }
    // Before any content another target can still answer; a tool call whose arguments are
    // incomplete could do harm.
    this.#malformed.skip({ mayGoOn: this.#hasStarted && !this.#isWithinCall() });
  }

  #isWithinCall(): boolean {
    return [...this.#choices.values()].some(
      ({ finishReason, tools, hasFunctionCall }) =>
        finishReason === undefined && (tools.count > 0 || hasFunctionCall),
    );
  }

  #whyNotWhole(): UpstreamFailure | undefined {
    const choices = [...this.#choices.values()];
    const isWhole = choices.length > 0 && choices.every((choice) => choice.finishReason);
    return isWhole ? undefined : cutShort().withUsage(this.#unreportedUsage);
  }

  #readChunk(chunk: JsonObject, events: ChatEvent[]): void {
    this.#readStart(chunk);
    const choices = listOf(chunk["choices"]) ?? [];
    choices.forEach((choice, position) => {
      if (isObject(choice)) this.#readChoice(choice, position, events);
    });
    this.#reportUsage(chunk, events);
  }

  /** Some servers begin with a chunk without these fields. */
  #readStart(chunk: JsonObject): void {
    if (this.#hasStarted) return;
    this.#systemFingerprint ??= nonEmpty(chunk["system_fingerprint"]);
    this.#serviceTier ??= nonEmpty(chunk["service_tier"]);
  }

  #startEvent(): ChatEvent {
    return {
      type: "answer-start",
      systemFingerprint: this.#systemFingerprint,
      serviceTier: this.#serviceTier,
    };
  }

  /** Held back until there is content, so that a failure right after it can still be retried. */
  #reportUsage(chunk: JsonObject, events: ChatEvent[]): void {
    const usage = readUsage(chunk["usage"]) ?? this.#unreportedUsage;
    if (usage === undefined) return;
    this.#unreportedUsage = this.#hasStarted ? undefined : usage;
    if (this.#hasStarted) events.push({ type: "usage-report", usage });
  }

  #readChoice(choice: JsonObject, position: number, events: ChatEvent[]): void {
    const index = numberOf(choice["index"]) ?? position;
    const state = this.#stateOf(index);
    const before = events.length;
    const delta = objectOf(choice["delta"]);
    if (delta !== undefined) {
      readText(delta, { index, logprobs: objectOf(choice["logprobs"]), events });
      state.tools.read(listOf(delta["tool_calls"]), events);
      readFunctionCall(delta, { index, state, events });
    }
    this.#readFinish(choice, state, { index, events });
    if (this.#hasStarted || events.length === before) return;
    this.#hasStarted = true;
    events.splice(before, 0, this.#startEvent());
  }

  #readFinish(choice: JsonObject, state: ChoiceState, sink: Sink): void {
    const reason = nonEmpty(choice["finish_reason"]);
    if (reason === undefined || state.finishReason !== undefined) return;
    state.tools.finish(sink.events);
    state.finishReason = readFinishReason(reason, {
      hasToolCalls: state.tools.count > 0,
      hasFunctionCall: state.hasFunctionCall,
    });
    sink.events.push({
      type: "choice-finish",
      choice: sink.index,
      finishReason: state.finishReason,
    });
  }

  #stateOf(index: number): ChoiceState {
    const known = this.#choices.get(index);
    if (known !== undefined) return known;
    checkChoiceCount(this.#choices.size + 1);
    const tools = new ToolCallTracker(index, this.#newToolCallId);
    const state = { tools, hasFunctionCall: false, finishReason: undefined };
    this.#choices.set(index, state);
    return state;
  }
}

interface Sink {
  readonly index: number;
  readonly events: ChatEvent[];
}

function readText(
  delta: JsonObject,
  sink: Sink & { readonly logprobs: JsonObject | undefined },
): void {
  const { index: choice, events } = sink;
  const reasoning = nonEmpty(delta["reasoning_content"]) ?? nonEmpty(delta["reasoning"]);
  if (reasoning !== undefined) events.push({ type: "reasoning-delta", choice, text: reasoning });
  const refusal = nonEmpty(delta["refusal"]);
  if (refusal !== undefined) {
    const logprobs = readLogprobs(sink.logprobs?.["refusal"]);
    events.push({ type: "refusal-delta", choice, text: refusal, ...logprobs });
  }
  const text = readContent(delta["content"]) ?? "";
  const logprobs = readLogprobs(sink.logprobs?.["content"]);
  if (text === "" && logprobs === undefined) return;
  events.push({ type: "text-delta", choice, text, ...logprobs });
}

function readLogprobs(value: unknown): { readonly logprobs: readonly unknown[] } | undefined {
  const logprobs = listOf(value) ?? [];
  return logprobs.length > 0 ? { logprobs } : undefined;
}

function readFunctionCall(delta: JsonObject, sink: Sink & { readonly state: ChoiceState }): void {
  const call = objectOf(delta["function_call"]);
  if (call === undefined) return;
  const { index: choice, state, events } = sink;
  const name = textOf(call["name"]) ?? "";
  if (name !== "" && !state.hasFunctionCall) {
    state.hasFunctionCall = true;
    events.push({ type: "function-call-start", choice, name });
  }
  const text = textOf(call["arguments"]) ?? "";
  if (text !== "") events.push({ type: "function-call-delta", choice, arguments: text });
}

function cutShort(): UpstreamFailure {
  return brokenAnswer("the upstream's stream ended before the answer was finished");
}

/** Throws the error in the body, or that a whole answer came instead of a stream. */
function refuseBody(json: string): never {
  parseAnswer(json, "choices");
  throw brokenAnswer("the upstream answered a request for a stream with one JSON object");
}
