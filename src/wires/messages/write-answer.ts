import type {
  AnswerBlock,
  AnswerText,
  ChatChoice,
  ChatResult,
  FinishReason,
} from "../../domain/chat/answer.ts";
import { toolInput } from "../../domain/chat/tool-input.ts";
import type { JsonObject } from "../../domain/json-object.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import type { AnswerOptions } from "../stream-writer.ts";

/** The id is `msg_...`; the time is not told. */
export type MessageOptions = Pick<AnswerOptions, "id" | "model">;

/** The `message` object of a whole answer; of several choices, the first. */
export function writeMessage(
  { choices, serviceTier }: ChatResult,
  { id, model, usage }: MessageOptions & { readonly usage: TokenUsage },
): object {
  const [choice] = choices;
  const blocks = joined(choice?.blocks ?? []);
  const end = stopFields(choice, {
    calls: blocks.some(({ type }) => type === "tool-call"),
    refuses: blocks.some(({ type }) => type === "refusal"),
  });
  return {
    id,
    type: "message",
    role: "assistant",
    model,
    content: blocks.map((block, index) => writeBlock(block, mintedId(id, index))),
    ...end,
    usage: { ...writeUsage(usage), ...tierField(serviceTier) },
  };
}

/** The id of a call that its upstream gave none. */
export function mintedId(messageId: string, index: number): string {
  return `toolu_${messageId.replace(/^msg_/, "")}_${index}`;
}

/** A refusal is one block with the texts around it. Empty ones are refused when sent back. */
function joined(blocks: readonly AnswerBlock[]): readonly AnswerBlock[] {
  const all: AnswerBlock[] = [];
  for (const block of blocks) {
    const last = all.at(-1);
    if (!isText(block)) {
      if (block.type !== "reasoning" || block.text !== "" || block.opaque !== undefined) {
        all.push(block);
      }
    } else if (block.text !== "") {
      const isOne = last?.type === "refusal" || (last?.type === "text" && block.type === "refusal");
      if (isOne) all[all.length - 1] = { type: "refusal", text: last.text + block.text };
      else all.push(block);
    }
  }
  return all;
}

function isText(block: AnswerBlock): block is AnswerText {
  return block.type === "text" || block.type === "refusal";
}

function writeBlock(block: AnswerBlock, minted: string): object {
  switch (block.type) {
    case "text":
    case "refusal": {
      const { text, citations } = block;
      return { type: "text", text, ...(citations !== undefined && { citations }) };
    }
    case "reasoning":
      return block.isRedacted === true
        ? { type: "redacted_thinking", data: block.opaque ?? "" }
        : { type: "thinking", thinking: block.text, signature: block.opaque ?? "" };
    case "tool-call": {
      const { id, kind, name } = block;
      const input = kind === "custom" ? { input: block.arguments } : inputOf(block.arguments);
      return { type: "tool_use", id: id === undefined || id === "" ? minted : id, name, input };
    }
  }
}

/**
 * The input of a call. A model may write text that is no JSON object; it stands in the object that
 * Anthropic's documentation gives for that.
 */
function inputOf(text: string): JsonObject {
  return text.trim() === "" ? {} : (toolInput(text) ?? { INVALID_JSON: text });
}

/** What an answer has, beside its end: clients go by the blocks. */
interface Content {
  /** A call of a tool. */
  readonly calls: boolean;
  /** A refusal instead of an answer. */
  readonly refuses: boolean;
}

type AnswerEnd = Pick<ChatChoice, "finishReason" | "stopSequence" | "stopDetails">;

/** `stop_reason` and what belongs to it. */
export function stopFields(end: AnswerEnd | undefined, content: Content): object {
  const word = stopWord(end?.finishReason ?? "stop", content);
  return {
    stop_reason: word,
    stop_sequence: word === "stop_sequence" ? (end?.stopSequence ?? null) : null,
    ...(word === "refusal" && {
      stop_details: end?.stopDetails ?? { type: "refusal", category: null, explanation: null },
    }),
  };
}

function stopWord(reason: FinishReason, { calls, refuses }: Content): string {
  switch (reason) {
    case "stop":
    case "tool_calls":
    case "function_call":
      if (calls) return "tool_use";
      return refuses ? "refusal" : "end_turn";
    case "stop_sequence":
      return "stop_sequence";
    case "length":
      return "max_tokens";
    case "window_full":
      return "model_context_window_exceeded";
    case "content_filter":
    case "refusal":
      return "refusal";
    case "pause":
      return "pause_turn";
  }
}

/** `usage`: here the input excludes what was read from the cache or written to it. */
export function writeUsage(usage: TokenUsage): object {
  const { cachedInputTokens: read, cacheWriteTokens: written = 0, reasoningTokens } = usage;
  return {
    input_tokens: Math.max(0, usage.inputTokens - read - written),
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    output_tokens: usage.outputTokens,
    ...(usage.costUsd !== undefined && { cost_usd: usage.costUsd }),
    ...(reasoningTokens > 0 && { output_tokens_details: { thinking_tokens: reasoningTokens } }),
  };
}

/** Anthropic has two names of tiers for OpenAI's many. */
export function tierField(serviceTier: string | undefined): object {
  if (serviceTier === "default" || serviceTier === "standard") return { service_tier: "standard" };
  return serviceTier === "priority" ? { service_tier: serviceTier } : {};
}
