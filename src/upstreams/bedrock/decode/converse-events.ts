import { brokenAnswer } from "../../../domain/errors/upstream-failure.ts";
import { wellFormedJson } from "../../../domain/chat/well-formed.ts";
import {
  countOf,
  isObject,
  isTextOrNone,
  type JsonObject,
  listOf,
  objectOf,
  textOf,
} from "../../../domain/json-fields.ts";
import { ContentBlocks } from "../../shared/answers/content-blocks.ts";
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import { thoughtTokensIn } from "../thinking/plan-reasoning.ts";

/**
 * As a stream has it. A block has one of these fields; kinds of content that chat does not have are
 * left out.
 */
export function readBlock(block: JsonObject, blocks: ConverseBlocks): void {
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

/** The content as Converse writes it. */
export class ConverseBlocks extends ContentBlocks {
  start(index: number | undefined, { type, toolUseId, name }: JsonObject): void {
    // The service runs such a tool itself and continues.
    if (type === "server_tool_use") this.ignoredCall(index);
    else this.call(index, { id: toolUseId, name });
  }

  /** Citations and unknown kinds of content are left out. */
  delta(index: number | undefined, { text, toolUse, reasoningContent }: JsonObject): void {
    if (typeof text === "string") this.text(text);
    if (isObject(reasoningContent)) {
      this.thought(index, {
        text: textOf(reasoningContent["text"]),
        signature: textOf(reasoningContent["signature"]),
        data: textOf(reasoningContent["redactedContent"]),
      });
    }
    if (isObject(toolUse)) this.input(index, textOf(toolUse["input"]) ?? "");
  }
}

/**
 * The counts of `usage`, and the count of thoughts in the model's own fields that the answer
 * repeats.
 *
 * The service counts reads from and writes to its cache separately from the other input. Undefined
 * when it has no count; if it has only some of the counts, the others are 0.
 */
export function readUsage(
  value: unknown,
  modelFields: unknown,
  serviceTier: string | undefined,
): TokenUsage | undefined {
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
    ...(cacheWriteTokens > 0 && { cacheWriteTokens, ...writesForAnHour(usage) }),
    ...(serviceTier !== undefined && { serviceTier }),
    reasoningTokens: Math.min(thoughtTokensIn(modelFields), outputTokens ?? 0),
  };
}

/** The details of the writes, by how long they are kept. */
function writesForAnHour({ cacheDetails }: JsonObject): Partial<TokenUsage> {
  let cacheWrite1hTokens = 0;
  for (const detail of listOf(cacheDetails) ?? []) {
    if (!isObject(detail) || detail["ttl"] !== "1h") continue;
    cacheWrite1hTokens += countOf(detail["inputTokens"]) ?? 0;
  }
  return cacheWrite1hTokens > 0 ? { cacheWrite1hTokens } : {};
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
