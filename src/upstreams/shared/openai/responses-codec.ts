import type { ChatEvent } from "../../../domain/chat/answer.ts";
import { type Conversation, fieldOf } from "../../../domain/chat/conversation.ts";
import {
  brokenAnswer,
  unsupported,
  UpstreamFailure,
} from "../../../domain/errors/upstream-failure.ts";
import {
  countOf,
  isObject,
  type JsonObject,
  objectOf,
  parseJson,
} from "../../../domain/json-fields.ts";
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import { ResponseReader, type ResponseServices } from "../../../wires/responses/read-answer.ts";
import type { ChatCodec } from "../../adapter.ts";
import {
  finishReasonOf,
  interruptedAnswer,
  type OnUnknownFinish,
  readFinishWord,
} from "../finish-words.ts";
import { billedTier } from "../../../domain/money/service-tier.ts";
import { type AnswerWire, createSseCodec, type EventReader } from "../sse-codec.ts";
import { StopCutter } from "../stop-cutter.ts";
import type { Ask } from "./chat-codec.ts";
import { errorIn, messageOf } from "./error-body.ts";
import { readCounts } from "./read-counts.ts";
import { classifyError } from "./read-failure.ts";

/** Fields of the public API without a name in a conversation, as of chat. */
export const ownFields: ReadonlySet<string> = new Set([
  "max_tool_calls",
  "prompt_cache_options",
  "prompt_cache_retention",
]);

interface CodecServices {
  readonly newToolCallId: () => string;
  readonly onUnknownFinish: OnUnknownFinish;
}

/** The Responses API, whole and streamed. */
export function createResponsesCodec(
  ask: Ask,
  services: CodecServices,
): Pick<ChatCodec, "encode" | "encodeStream"> {
  return createSseCodec((conversation, model) => {
    refuseOptions(conversation);
    const { askedTier, request, adjusted } = ask(conversation, model);
    const parts: AnswerParts = {
      ...servicesOf(services),
      usageOf: ({ usage, service_tier: tier }) => readUsage(usage, billedTier(tier, askedTier)),
      usesFunctions: conversation.tools.some(({ isOld }) => isOld === true),
      stop: conversation.options.stop ?? [],
    };
    const usageOf: AnswerWire["usageOf"] = (usage) => parts.usageOf({ usage });
    return { request, adjusted, wire: { newReader: () => new ResponseAnswer(parts), usageOf } };
  });
}

/** Options that change the answer, and for which the wire has no field. Stops are made up for. */
function refuseOptions(request: Conversation): void {
  const { presencePenalty, frequencyPenalty, logitBias, n } = request.options;
  const asked = [
    ["presencePenalty", (presencePenalty ?? 0) !== 0],
    ["frequencyPenalty", (frequencyPenalty ?? 0) !== 0],
    ["logitBias", Object.keys(logitBias ?? {}).length > 0],
    ["n", (n ?? 1) > 1],
  ] as const;
  for (const [option, isAsked] of asked) {
    if (!isAsked) continue;
    const field = fieldOf(request, option);
    throw unsupported(field, `This model does not support ${field}. Remove it from the request.`);
  }
}

interface AnswerParts extends ResponseServices {
  /** The caller's stop sequences. */
  readonly stop: readonly string[];
}

function servicesOf({ newToolCallId, onUnknownFinish }: CodecServices) {
  return {
    newToolCallId,
    failureOf: (error: unknown) => new UpstreamFailure(classifyError(undefined, error)),
    finishOf: (word: string, hasCalls: boolean) => {
      const meaning = readFinishWord(word);
      if (meaning === "interrupted") throw interruptedAnswer(word);
      if (meaning === "unknown") onUnknownFinish(word);
      return finishReasonOf(meaning, hasCalls ? "tool_calls" : undefined);
    },
  };
}

/** Undefined when it has no count. */
function readUsage(value: unknown, serviceTier: string | undefined): TokenUsage | undefined {
  const usage = objectOf(value);
  const input = objectOf(usage?.["input_tokens_details"]);
  const output = objectOf(usage?.["output_tokens_details"]);
  return readCounts({
    input: countOf(usage?.["input_tokens"]),
    output: countOf(usage?.["output_tokens"]),
    total: countOf(usage?.["total_tokens"]),
    cached: countOf(input?.["cached_tokens"]),
    cacheWrite: countOf(input?.["cache_write_tokens"]),
    reasoning: countOf(output?.["reasoning_tokens"]),
    serviceTier,
  });
}

/** A 200 that is an error, or has an error in place of the output. */
function errorOf(response: JsonObject): JsonObject | undefined {
  const error = errorIn(response);
  const isFlat = response["output"] === undefined && messageOf(response) !== undefined;
  return error ?? (isFlat ? response : undefined);
}

class ResponseAnswer implements EventReader {
  readonly #parts: AnswerParts;
  readonly #reader: ResponseReader;
  readonly #text: CutText;

  constructor(parts: AnswerParts) {
    this.#parts = parts;
    this.#reader = new ResponseReader(parts);
    this.#text = new CutText(parts.stop);
  }

  get isFinished(): boolean {
    return this.#reader.isFinished;
  }

  get isCut(): boolean {
    return this.#text.isCut;
  }

  get mayGoOn(): boolean {
    return this.#reader.mayGoOn;
  }

  readData(data: string, events: ChatEvent[]): boolean {
    const event = parseJson(data);
    const error = isObject(event) && event["type"] === undefined ? errorOf(event) : undefined;
    if (error !== undefined) throw this.#parts.failureOf(error);
    if (!isObject(event)) return data.trim() === "[DONE]";
    if (this.#parts.stop.length > 0) return this.#cut(events, () => this.#reader.readEvent(event));
    this.#reader.writeTo(events);
    return this.#reader.readEvent(event);
  }

  readWhole(json: string, events: ChatEvent[]): void {
    const response = parseJson(json);
    const error = isObject(response) ? errorOf(response) : undefined;
    if (error !== undefined) throw this.#parts.failureOf(error);
    if (!isObject(response) || !Array.isArray(response["output"])) {
      throw brokenAnswer("the upstream's answer is not the expected JSON");
    }
    this.#cut(events, () => this.#reader.readWhole(response));
  }

  end(): void {
    throw brokenAnswer("the upstream's stream ended before the answer was finished");
  }

  /** Events before a failure count. */
  #cut<Read>(events: ChatEvent[], read: () => Read): Read {
    const found: ChatEvent[] = [];
    this.#reader.writeTo(found);
    try {
      return read();
    } finally {
      for (const event of this.#text.cut(found)) events.push(event);
    }
  }
}

/** Ends the text of an answer at the caller's stop sequences, for which the wire has no field. */
class CutText {
  readonly #cutter: StopCutter;
  readonly #hasStops: boolean;

  constructor(stop: readonly string[]) {
    this.#cutter = new StopCutter(stop);
    this.#hasStops = stop.length > 0;
  }

  get isCut(): boolean {
    return this.#cutter.isCut;
  }

  cut(events: readonly ChatEvent[]): readonly ChatEvent[] {
    if (!this.#hasStops) return events;
    const cut: ChatEvent[] = [];
    for (const event of events) this.#add(event, cut);
    return cut;
  }

  #add(event: ChatEvent, cut: ChatEvent[]): void {
    // Of what comes after the stop, only the usage counts.
    if (this.isCut) {
      if (event.type === "usage-report") cut.push(event);
      return;
    }
    const isText = event.type === "text-delta";
    const text = isText ? this.#cutter.push(event.text) : this.#cutter.flush();
    if (text !== "") cut.push({ type: "text-delta", choice: 0, text });
    if (!isText) cut.push(event);
    if (!this.isCut) return;
    const stopSequence = this.#cutter.found;
    cut.push({ type: "choice-finish", choice: 0, finishReason: "stop_sequence", stopSequence });
  }
}
