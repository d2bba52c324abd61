import type { ReasoningBlock } from "../../domain/chat/chat.ts";

/**
 * An entry of `reasoning_details`, in OpenRouter's form: a signed text, or data that is hidden.
 * Callers send the entries back as they are. Reference: OpenRouter's guide to reasoning tokens.
 */
export function reasoningDetail(block: ReasoningBlock, index: number): object {
  const format = "anthropic-claude-v1";
  switch (block.kind) {
    case "signed": {
      const { text, signature } = block;
      return { type: "reasoning.text", text, signature, format, index };
    }
    case "redacted":
      return { type: "reasoning.encrypted", data: block.data, format, index };
  }
}
