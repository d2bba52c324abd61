import type { ChatEvent } from "../../../domain/chat/answer.ts";
import { wellFormedJson } from "../../../domain/chat/well-formed.ts";
import { brokenAnswer, UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";
import {
  countOf,
  isObject,
  type JsonObject,
  listOf,
  nonEmpty,
  numberOf,
  objectOf,
  parseObject,
  textOf,
} from "../../../domain/json-fields.ts";
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import { type AnswerContext, withoutAnswerBesideCalls } from "../answers/answer-context.ts";
import { AnswerEvents } from "../answers/answer-events.ts";
import { ContentBlocks } from "../answers/content-blocks.ts";
import type { OnUnknownFinish } from "../finish-words.ts";
import type { EventReader } from "../answer-codec.ts";
import { parseExactly } from "../tools/tool-arguments.ts";
import { classifyError } from "../openai/read-failure.ts";

/**
 * Reads an answer of the Messages API, event by event, or whole. Blocks that are not of the form,
 * such as those of tools that the provider runs, are left out. Source: platform.claude.com,
 * "Streaming messages" and "Messages".
 */
export class MessagesAnswer implements EventReader {
  readonly #context: AnswerContext;
  readonly #answer: AnswerEvents;
  readonly #blocks: ContentBlocks;
  /** The open blocks that are read, by index, each with the input that its start has. */
  readonly #open = new Map<number | undefined, { input: JsonObject | undefined }>();
  /** The open blocks that are left out. */
  readonly #ignored = new Set<number | undefined>();
  #events: ChatEvent[] = [];
  #counts: Counts = {};
  #isStartTold = false;
  #isFinished = false;
  #stopReason: string | undefined;
  #stopSequence: string | undefined;
  #stopDetails: JsonObject | undefined;
  #tier: string | undefined;
  #billed: string | undefined;

  constructor(context: AnswerContext, onUnknownFinish: OnUnknownFinish) {
    this.#context = context;
    this.#answer = new AnswerEvents(context, onUnknownFinish);
    this.#blocks = new ContentBlocks(this.#answer);
  }

  get isFinished(): boolean {
    return this.#isFinished;
  }

  /** Whether a stop sequence that the gateway itself looks for ended the answer. */
  get isCut(): boolean {
    return this.#answer.isCut;
  }

  get mayGoOn(): boolean {
    return this.#answer.hasSpoken && !this.#blocks.isWithinCall;
  }

  #writeTo(events: ChatEvent[]): void {
    this.#events = events;
    this.#answer.writeTo(events);
  }

  readData(data: string, events: ChatEvent[]): boolean {
    this.#writeTo(events);
    const event = parseObject(data);
    if (event === undefined) return false;
    const before = this.#events.length;
    const isSound = this.#read(event);
    // Told with the first content: before it, another target can still answer.
    if (!this.#isStartTold && this.#events.length > before) {
      this.#isStartTold = true;
      const usage = usageOf({ ...this.#counts, output: 0 }, this.#billed);
      if (usage !== undefined) this.#events.splice(before, 0, { type: "usage-start", usage });
    }
    if (this.isCut && !this.#isFinished) this.#finish("stop_sequence");
    return isSound;
  }

  readWhole(json: string, events: ChatEvent[]): void {
    this.#writeTo(events);
    const body = parseExactly(json);
    refuseError(body);
    const content = listOf(body["content"]);
    if (content === undefined) throw brokenAnswer("the upstream's answer has no content");
    this.#isStartTold = true;
    this.#readUsage(body["usage"]);
    withoutAnswerBesideCalls(content, this.#context, calledTool).forEach((block, index) => {
      if (!isObject(block)) return;
      this.#startBlock(index, block);
      this.#endBlock(index);
    });
    this.#readStop(body);
    this.#finish(this.#stopReason);
  }

  end(events: ChatEvent[]): void {
    this.#writeTo(events);
    if (this.#stopReason === undefined) {
      throw brokenAnswer("the upstream's stream ended before the answer was finished");
    }
    this.#finish(this.#stopReason);
  }

  #read(event: JsonObject): boolean {
    const index = numberOf(event["index"]);
    switch (event["type"]) {
      case "message_start": {
        const message = objectOf(event["message"]);
        this.#readUsage(message?.["usage"]);
        return message !== undefined;
      }
      case "content_block_start": {
        const block = objectOf(event["content_block"]);
        if (block !== undefined) this.#startBlock(index, block);
        return block !== undefined;
      }
      case "content_block_delta": {
        const delta = objectOf(event["delta"]);
        return delta !== undefined && this.#readDelta(index, delta);
      }
      case "content_block_stop":
        this.#endBlock(index);
        return true;
      case "message_delta": {
        const delta = objectOf(event["delta"]);
        this.#readUsage(event["usage"]);
        if (delta !== undefined) this.#readStop(delta);
        return delta !== undefined;
      }
      case "message_stop":
        this.end(this.#events);
        return true;
      default:
        refuseError(event);
        // Pings, and events that are not known yet.
        return typeof event["type"] === "string";
    }
  }

  /** A whole block has all its content here, an empty one of a stream has it in its deltas. */
  #startBlock(index: number | undefined, block: JsonObject): void {
    const { type, text } = block;
    switch (type) {
      case "text":
        if (typeof text !== "string") throw brokenAnswer("a text of the answer is not text");
        this.#open.set(index, { input: undefined });
        this.#answer.startText();
        this.#answer.text(text);
        for (const citation of listOf(block["citations"]) ?? []) this.#cite(citation);
        return;
      case "thinking":
        this.#open.set(index, { input: undefined });
        this.#blocks.thought(index, {
          text: textOf(block["thinking"]),
          signature: textOf(block["signature"]),
        });
        return;
      case "redacted_thinking":
        this.#open.set(index, { input: undefined });
        this.#blocks.thought(index, { data: textOf(block["data"]) });
        return;
      case "tool_use":
        this.#open.set(index, { input: objectOf(block["input"]) });
        this.#blocks.call(index, { id: block["id"], name: block["name"] });
        return;
      default:
        this.#ignored.add(index);
    }
  }

  /** False for a delta without its field. Deltas of blocks that are left out have no effect. */
  #readDelta(index: number | undefined, delta: JsonObject): boolean {
    if (this.#ignored.has(index)) return true;
    // Some servers do not tell where a block begins.
    const block = this.#open.get(index) ?? { input: undefined };
    this.#open.set(index, block);
    const piece = textOf(delta[deltaFields[textOf(delta["type"]) ?? ""] ?? ""]);
    switch (delta["type"]) {
      case "text_delta":
        this.#answer.text(piece ?? "");
        break;
      case "citations_delta":
        return this.#cite(delta["citation"]);
      case "thinking_delta":
        this.#blocks.thought(index, { text: piece });
        break;
      case "signature_delta":
        this.#blocks.thought(index, { signature: piece });
        break;
      case "input_json_delta":
        if (piece !== undefined && piece !== "") block.input = undefined;
        this.#blocks.input(index, piece ?? "");
        break;
      default:
        // Deltas that are not known yet.
        return typeof delta["type"] === "string";
    }
    return piece !== undefined;
  }

  #cite(citation: unknown): boolean {
    if (!isObject(citation)) return false;
    this.#answer.citation(citation);
    return true;
  }

  #endBlock(index: number | undefined): void {
    this.#ignored.delete(index);
    const block = this.#open.get(index);
    if (block === undefined) return;
    this.#open.delete(index);
    // Some servers send the whole input with the start.
    const { input } = block;
    if (input !== undefined && Object.keys(input).length > 0) {
      this.#blocks.input(index, wellFormedJson(input));
    }
    this.#blocks.end(index);
  }

  #readStop(told: JsonObject): void {
    this.#stopReason = nonEmpty(told["stop_reason"]) ?? this.#stopReason;
    this.#stopSequence = nonEmpty(told["stop_sequence"]) ?? this.#stopSequence;
    this.#stopDetails = objectOf(told["stop_details"]) ?? this.#stopDetails;
  }

  #readUsage(usage: unknown): void {
    this.#counts = { ...this.#counts, ...countsIn(usage) };
    this.#tier = tierOf(usage) ?? this.#tier;
    this.#billed = billedAs(usage) ?? this.#billed;
  }

  #finish(reason: string | undefined): void {
    this.#isFinished = true;
    for (const index of this.#open.keys()) this.#endBlock(index);
    this.#answer.serviceTier(this.#tier);
    this.#answer.finish(reason, {
      usage: usageOf(this.#counts, this.#billed),
      stopSequence: this.#stopSequence,
      stopDetails: this.#stopDetails,
    });
  }
}

/** The field of each kind of delta. */
const deltaFields: Readonly<Record<string, string>> = {
  text_delta: "text",
  thinking_delta: "thinking",
  signature_delta: "signature",
  input_json_delta: "partial_json",
};

function refuseError(body: JsonObject): void {
  const error = objectOf(body["error"]);
  if (body["type"] !== "error" && error === undefined) return;
  throw new UpstreamFailure(classifyError(undefined, error ?? {}));
}

function calledTool(block: unknown): unknown {
  return isObject(block) && block["type"] === "tool_use" ? block["name"] : undefined;
}

/** The counts of `usage`, which are sums so far. Absent ones are not there. */
type Counts = Partial<
  Record<"uncached" | "read" | "written" | "written1h" | "output" | "thinking", number>
>;

function countsIn(value: unknown): Counts {
  const usage = objectOf(value);
  if (usage === undefined) return {};
  const counts = {
    uncached: countOf(usage["input_tokens"]),
    read: countOf(usage["cache_read_input_tokens"]),
    written: countOf(usage["cache_creation_input_tokens"]) ?? sumOf(usage["cache_creation"]),
    written1h: countOf(objectOf(usage["cache_creation"])?.["ephemeral_1h_input_tokens"]),
    output: countOf(usage["output_tokens"]),
    thinking: countOf(objectOf(usage["output_tokens_details"])?.["thinking_tokens"]),
  };
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== undefined));
}

/** Writes for five minutes and for an hour. */
function sumOf(written: unknown): number | undefined {
  const parts = objectOf(written);
  if (parts === undefined) return undefined;
  return Object.values(parts).reduce<number>((sum, part) => sum + (countOf(part) ?? 0), 0);
}

/** The API counts reads from and writes to its cache separately from the other input. */
function usageOf(counts: Counts, serviceTier: string | undefined): TokenUsage | undefined {
  const { uncached, output, read = 0, written = 0, written1h = 0, thinking = 0 } = counts;
  if (uncached === undefined && output === undefined) return undefined;
  const outputTokens = output ?? 0;
  return {
    inputTokens: (uncached ?? 0) + read + written,
    outputTokens,
    cachedInputTokens: read,
    ...(written > 0 && { cacheWriteTokens: written }),
    ...(written1h > 0 && { cacheWrite1hTokens: written1h }),
    ...(serviceTier !== undefined && { serviceTier }),
    reasoningTokens: Math.min(thinking, outputTokens),
  };
}

/** The usage in a body that cannot be read otherwise. */
export function messagesUsage(value: unknown): TokenUsage | undefined {
  return usageOf(countsIn(value), billedAs(value));
}

/** The tier that served; the usual one goes without saying. */
function tierOf(usage: unknown): string | undefined {
  const tier = textOf(objectOf(usage)?.["service_tier"]);
  return tier === "standard" ? "default" : tier;
}

/**
 * What the price depends on beside the counts: the tier, the fast mode and the geography of the
 * inference, each with a price of its own; such as `priority`, `fast` or `fast-us`. The usual one is
 * `default`; undefined: the answer does not say. Source: platform.claude.com, "Service tiers", "Fast
 * mode", "Data residency".
 */
function billedAs(value: unknown): string | undefined {
  const usage = objectOf(value);
  const said = [usage?.["service_tier"], usage?.["speed"], usage?.["inference_geo"]]
    .map(nonEmpty)
    .filter((part) => part !== undefined);
  const special = said.filter((part) => !usualParts.has(part));
  return said.length > 0 && special.length === 0 ? "default" : nonEmpty(special.join("-"));
}

const usualParts: ReadonlySet<string> = new Set(["standard", "global", "not_available"]);
