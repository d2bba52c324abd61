import { brokenAnswer } from "../../../domain/errors/upstream-failure.ts";
import type { AnswerReasoning, ChatEvent } from "../../../domain/chat/answer.ts";
import { wellFormedJson } from "../../../domain/chat/well-formed.ts";
import type { AnswerHeaders } from "../../adapter.ts";
import {
  countOf,
  isObject,
  isTextOrNone,
  type JsonObject,
  listOf,
  objectOf,
  textOf,
} from "../../../domain/json-fields.ts";
import type { OnUnknownFinish } from "../../shared/finish-words.ts";
import { answerFailure } from "../../shared/answer-decoder.ts";
import type { AnswerContext } from "../../shared/answers/answer-context.ts";
import { stopSequenceIn } from "../encode/encode-inference.ts";
import { AnswerEvents } from "../../shared/answers/answer-events.ts";
import { ignoredInput, type ToolInput } from "../../shared/answers/tool-input.ts";
import { guardrailOutcome } from "./guardrail.ts";
import { parseExactly } from "../../shared/tools/tool-arguments.ts";
import { failureInAnswer } from "../read-failure.ts";
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import { thoughtTokensIn } from "../thinking/plan-reasoning.ts";

/**
 * The events that a stream of a whole Converse answer would have had, each block in one piece.
 * Throws `UpstreamFailure` for JSON that is not a whole answer.
 */
export function converseEvents(
  { json, headers }: WholeText,
  context: AnswerContext,
  onUnknownFinish: OnUnknownFinish,
): readonly ChatEvent[] {
  try {
    const body = parseExactly(json);
    const message = objectOf(objectOf(body["output"])?.["message"]);
    const content = listOf(message?.["content"]);
    if (content === undefined) {
      throw failureInAnswer(body, headers) ?? brokenAnswer("the upstream's answer has no content");
    }
    const blocks = withoutAnswerBesideCalls(content, context.answerTool);
    const events: ChatEvent[] = [];
    const answer = new AnswerEvents(context, onUnknownFinish);
    answer.writeTo(events);
    readAnswer(body, blocks, answer);
    return events;
  } catch (error) {
    throw answerFailure(error);
  }
}

/** A model that calls the caller's tools is not done, even if it also returns an answer. */
function withoutAnswerBesideCalls(
  content: readonly unknown[],
  answerTool: string | undefined,
): readonly unknown[] {
  const nameOf = (block: unknown): string | undefined =>
    textOf(objectOf(objectOf(block)?.["toolUse"])?.["name"]);
  const names = content.map(nameOf).filter((name) => name !== undefined);
  if (answerTool === undefined || names.every((name) => name === answerTool)) return content;
  return content.filter((block) => nameOf(block) !== answerTool);
}

/** A whole answer as text. */
interface WholeText {
  readonly json: string;
  readonly headers?: AnswerHeaders;
}

function readAnswer(body: JsonObject, content: readonly unknown[], answer: AnswerEvents): void {
  answer.serviceTier(textOf(objectOf(body["serviceTier"])?.["type"]));
  const blocks = new ContentBlocks(answer);
  for (const block of content) if (isObject(block)) readBlock(block, blocks);
  const { stopReason, trace, usage, additionalModelResponseFields: modelFields } = body;
  answer.finish(textOf(stopReason), {
    guardrail: guardrailOutcome(textOf(stopReason), trace),
    usage: readUsage(usage, modelFields),
    stopSequence: stopSequenceIn(modelFields),
  });
}

/**
 * As a stream has it. A block has one of these fields; kinds of content that chat does not have are
 * left out.
 */
function readBlock(block: JsonObject, blocks: ContentBlocks): void {
  const { text, toolUse, reasoningContent, citationsContent } = block;
  if (!isTextOrNone(text)) throw brokenAnswer("a text of the answer is not text");
  if (!isNoneOr(toolUse, () => true)) {
    throw brokenAnswer("a tool call of the answer is not an object");
  }
  // If sources are cited, the text is here.
  const cited = listOf(objectOf(citationsContent)?.["content"]) ?? [];
  for (const piece of [text, ...cited.map((each) => objectOf(each)?.["text"])]) {
    blocks.delta(0, { text: piece });
  }
  const thoughts = objectOf(reasoningContent);
  blocks.delta(0, {
    reasoningContent: thoughts && { ...thoughts, ...objectOf(thoughts["reasoningText"]) },
  });
  if (isObject(toolUse)) {
    blocks.start(0, toolUse);
    blocks.delta(0, { toolUse: { input: wellFormedJson(toolUse["input"] ?? {}) } });
  }
  blocks.end(0);
}

/** The content of an answer, block by block, each by the service's index of it. */
export class ContentBlocks {
  readonly #answer: AnswerEvents;
  /** Tool inputs that are incomplete. */
  readonly #toolInputs = new Map<number | undefined, ToolInput>();
  readonly #thoughts = new Map<number | undefined, Thought>();

  constructor(answer: AnswerEvents) {
    this.#answer = answer;
  }

  /** Whether a tool call is incomplete. */
  get isWithinCall(): boolean {
    return this.#toolInputs.size > 0;
  }

  start(index: number | undefined, toolUse: JsonObject): void {
    const { type, toolUseId, name } = toolUse;
    // The service runs such a tool itself and continues.
    const isServers = type === "server_tool_use";
    const input = isServers ? ignoredInput : this.#answer.toolUse(toolUseId, name);
    this.#toolInputs.set(index, input);
  }

  /** Citations and unknown kinds of content are left out. */
  delta(index: number | undefined, { text, toolUse, reasoningContent }: JsonObject): void {
    if (typeof text === "string") this.#answer.text(text);
    if (isObject(reasoningContent)) this.#readThought(index, reasoningContent);
    if (!isObject(toolUse)) return;
    const input = this.#toolInputs.get(index);
    if (input === undefined) throw brokenAnswer("the input of a tool has no beginning");
    input.push(textOf(toolUse["input"]) ?? "");
  }

  end(index: number | undefined): void {
    this.#toolInputs.get(index)?.end();
    this.#toolInputs.delete(index);
    const thought = this.#thoughts.get(index);
    if (thought !== undefined) this.#answer.reasoningBlock(blockOf(thought));
    this.#thoughts.delete(index);
  }

  endAll(): void {
    for (const index of this.#thoughts.keys()) this.end(index);
    for (const index of this.#toolInputs.keys()) this.end(index);
  }

  /** Throws `UpstreamFailure` when it is too long. */
  #readThought(index: number | undefined, reasoning: JsonObject): void {
    const thought = this.#thoughts.get(index) ?? { text: "", signature: "", data: "" };
    this.#thoughts.set(index, thought);
    const text = textOf(reasoning["text"]) ?? "";
    thought.text += text;
    thought.signature += textOf(reasoning["signature"]) ?? "";
    thought.data += textOf(reasoning["redactedContent"]) ?? "";
    const length = thought.text.length + thought.signature.length + thought.data.length;
    if (length > longestThought) throw brokenAnswer("the thoughts are too long");
    this.#answer.reasoning(text);
  }
}

/** A block of thoughts, joined: it must be sent back whole. */
interface Thought {
  text: string;
  signature: string;
  data: string;
}

/**
 * The counts of `usage`, and the count of thoughts in the model's own fields that the answer
 * repeats.
 *
 * The service counts reads from and writes to its cache separately from the other input. Undefined
 * when it has no count; if it has only some of the counts, the others are 0.
 */
export function readUsage(value: unknown, modelFields: unknown): TokenUsage | undefined {
  const usage = objectOf(value);
  const uncachedTokens = countOf(usage?.["inputTokens"]);
  const outputTokens = countOf(usage?.["outputTokens"]);
  if (usage === undefined || (uncachedTokens ?? outputTokens) === undefined) return undefined;
  const cachedInputTokens = countOf(usage["cacheReadInputTokens"]) ?? 0;
  const cacheWriteTokens = countOf(usage["cacheWriteInputTokens"]) ?? 0;
  return {
    inputTokens: (uncachedTokens ?? 0) + cachedInputTokens + cacheWriteTokens,
    outputTokens: outputTokens ?? 0,
    cachedInputTokens,
    ...(cacheWriteTokens > 0 && { cacheWriteTokens }),
    reasoningTokens: Math.min(thoughtTokensIn(modelFields), outputTokens ?? 0),
  };
}

/** Longest block of thoughts, in characters of all its parts; real ones are far shorter. */
const longestThought = 4 * 1024 * 1024;

/** Undefined for thoughts without a signature: no model needs those back. */
function blockOf({ text, signature, data }: Thought): AnswerReasoning | undefined {
  if (signature !== "") return { type: "reasoning", text, opaque: signature };
  if (data === "") return undefined;
  return { type: "reasoning", text: "", opaque: data, isRedacted: true };
}

/** The events of a ConverseStream that an answer is read from. */
export type KnownEvent =
  "contentBlockDelta" | "contentBlockStart" | "contentBlockStop" | "messageStop" | "metadata";

/**
 * Whether the fields of an event that are read have the shape in the service's model. Unknown
 * fields and kinds of content do no harm.
 */
export function hasProperShape(type: KnownEvent, event: JsonObject): boolean {
  switch (type) {
    case "contentBlockDelta":
      return isNoneOr(event["delta"], isDelta);
    case "contentBlockStart":
      return isNoneOr(event["start"], ({ toolUse }) => isNoneOr(toolUse, () => true));
    case "messageStop":
      return typeof event["stopReason"] === "string";
    case "contentBlockStop":
    case "metadata":
      return true;
  }
}

function isDelta({ text, toolUse, reasoningContent }: JsonObject): boolean {
  return (
    isTextOrNone(text) &&
    isNoneOr(toolUse, ({ input }) => isTextOrNone(input)) &&
    isNoneOr(reasoningContent, ({ text: thought, signature, redactedContent }) =>
      [thought, signature, redactedContent].every(isTextOrNone),
    )
  );
}

function isNoneOr(value: unknown, isProper: (object: JsonObject) => boolean): boolean {
  return value === undefined || value === null || (isObject(value) && isProper(value));
}
