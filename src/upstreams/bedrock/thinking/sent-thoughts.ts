import type { ChatMessage, ReasoningBlock } from "../../../domain/chat/chat.ts";
import { isObject, listOf, nonEmpty, textOf, type JsonObject } from "../../shared/json-fields.ts";
import type { ReasoningContentBlock } from "../encode/converse-body.ts";
import type { ThoughtSeal } from "./thought-seal.ts";

/**
 * The thoughts that a caller sends back with an assistant message and that the model recognises.
 * They are in `reasoning_details`, as they were sent, or in `thinking_blocks`, as LiteLLM's callers
 * keep them. Anything else in these fields is ignored.
 */
export function sentThoughts(
  message: ChatMessage,
  seal: ThoughtSeal,
): readonly ReasoningContentBlock[] {
  const details = listOf(message["reasoning_details"]) ?? [];
  const sent = details.length > 0 ? details : (listOf(message["thinking_blocks"]) ?? []);
  return sent.flatMap((detail) => {
    const read = isObject(detail) ? readDetail(detail) : undefined;
    const block = read && seal.open(read);
    return block === undefined ? [] : [contentBlockOf(block)];
  });
}

function readDetail(detail: JsonObject): ReasoningBlock | undefined {
  switch (detail["type"]) {
    case "reasoning.text":
      return signed(detail["text"], detail["signature"]);
    case "thinking":
      return signed(detail["thinking"], detail["signature"]);
    case "reasoning.encrypted":
    case "redacted_thinking": {
      const data = nonEmpty(detail["data"]);
      return data === undefined ? undefined : { kind: "redacted", data };
    }
    default:
      return undefined;
  }
}

/** Clients omit an empty text, but thoughts without visible text are signed too. */
function signed(text: unknown, signature: unknown): ReasoningBlock | undefined {
  const proof = nonEmpty(signature);
  if (proof === undefined) return undefined;
  return { kind: "signed", text: textOf(text) ?? "", signature: proof };
}

function contentBlockOf(block: ReasoningBlock): ReasoningContentBlock {
  switch (block.kind) {
    case "signed": {
      const { text, signature } = block;
      return { reasoningContent: { reasoningText: { text, signature } } };
    }
    case "redacted":
      return { reasoningContent: { redactedContent: block.data } };
  }
}
