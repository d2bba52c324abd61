import type { ChatEvent, ChatResult } from "../../../domain/chat/answer.ts";
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
  usageIn,
} from "../../../domain/json-fields.ts";
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import { ResponseReader, type ResponseServices } from "../../../wires/responses/read-answer.ts";
import type { ChatCodec, DecoderLimits } from "../../adapter.ts";
import { AnswerDecoder } from "../answer-decoder.ts";
import { collectAnswer, collectStream } from "../collect-answer.ts";
import {
  finishReasonOf,
  interruptedAnswer,
  type OnUnknownFinish,
  readFinishWord,
} from "../finish-words.ts";
import { billedTier } from "../../../domain/money/service-tier.ts";
import { SseParser } from "../sse-parser.ts";
import { StopCutter } from "../stop-cutter.ts";
import { isJson } from "../whole-body.ts";
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
  const partsFor = (request: Conversation, { askedTier }: ReturnType<Ask>): AnswerParts => ({
    ...servicesOf(services),
    usageOf: ({ usage, service_tier: tier }) => readUsage(usage, billedTier(tier, askedTier)),
    usesFunctions: request.tools.some(({ isOld }) => isOld === true),
    stop: request.options.stop ?? [],
  });
  const askFor = (request: Conversation, model: string) => {
    refuseOptions(request);
    const { askedTier, ...asked } = ask(request, model);
    return { asked, parts: partsFor(request, { askedTier, ...asked }) };
  };
  return {
    encode(request, model) {
      const { asked, parts } = askFor({ ...request, isStreamed: false }, model);
      return {
        ...asked,
        decode: ({ body }) => decodeResponse(body, parts),
        usageIn: (body) => parts.usageOf({ usage: usageIn(body) }),
      };
    },
    encodeStream(request, model) {
      const { asked, parts } = askFor({ ...request, isStreamed: true }, model);
      return { ...asked, newDecoder: (limits) => new ResponseStreamDecoder(parts, limits) };
    },
  };
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

/** Throws `UpstreamFailure` for anything but a response, or a stream of one. */
function decodeResponse(body: Uint8Array, parts: AnswerParts): ChatResult {
  if (!isJson(body)) {
    return collectStream((limits) => new ResponseStreamDecoder(parts, limits), body);
  }
  return collectAnswer(wholeEvents(new TextDecoder().decode(body), parts));
}

/** The events that a stream of a whole response would have had. */
function wholeEvents(json: string, parts: AnswerParts): readonly ChatEvent[] {
  const response = parseJson(json);
  const error = isObject(response) ? errorOf(response) : undefined;
  if (error !== undefined) throw parts.failureOf(error);
  if (!isObject(response) || !Array.isArray(response["output"])) {
    throw brokenAnswer("the upstream's answer is not the expected JSON");
  }
  const events: ChatEvent[] = [];
  const reader = new ResponseReader(parts);
  reader.writeTo(events);
  reader.readWhole(response);
  return new CutText(parts.stop).cut(events);
}

/** A 200 that is an error, or has an error in place of the output. */
function errorOf(response: JsonObject): JsonObject | undefined {
  const error = errorIn(response);
  const isFlat = response["output"] === undefined && messageOf(response) !== undefined;
  return error ?? (isFlat ? response : undefined);
}

/** The largest event that is read: the last one has the whole response. */
const eventLimitCharacters = 16 * 1024 * 1024;

/** Reads a stream of a response, or a whole one in its place, which is replayed. */
class ResponseStreamDecoder extends AnswerDecoder {
  readonly #parser = new SseParser(eventLimitCharacters);
  readonly #parts: AnswerParts;
  readonly #reader: ResponseReader;
  readonly #text: CutText;

  constructor(parts: AnswerParts, limits: DecoderLimits) {
    super(limits);
    this.#parts = parts;
    this.#reader = new ResponseReader(parts);
    this.#text = new CutText(parts.stop);
  }

  get endedEarly(): boolean {
    return this.#text.isCut;
  }

  protected override read(bytes: Uint8Array, events: ChatEvent[]): void {
    this.#readAll(this.#parser.push(bytes), events);
  }

  protected override readEnd(events: ChatEvent[]): void {
    this.#readAll(this.#parser.end(), events);
    if (!this.isDone) {
      throw brokenAnswer("the upstream's stream ended before the answer was finished");
    }
  }

  protected override readWhole(json: string): readonly ChatEvent[] {
    return wholeEvents(json, this.#parts);
  }

  #readAll(found: readonly string[], events: ChatEvent[]): void {
    if (found.length === 0) return;
    const read: ChatEvent[] = this.#parts.stop.length === 0 ? events : [];
    this.#reader.writeTo(read);
    try {
      for (const data of found) {
        this.#readData(data);
        if (this.#reader.isFinished) break;
      }
    } finally {
      if (read !== events) for (const event of this.#text.cut(read)) events.push(event);
    }
    if (this.#reader.isFinished || this.#text.isCut) this.finish();
  }

  #readData(data: string): void {
    const event = parseJson(data);
    const error = isObject(event) && event["type"] === undefined ? errorOf(event) : undefined;
    if (error !== undefined) throw this.#parts.failureOf(error);
    if (data.trim() === "[DONE]") return;
    if (!isObject(event) || !this.#reader.readEvent(event)) {
      this.skipMalformed({ mayGoOn: this.#reader.mayGoOn });
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
