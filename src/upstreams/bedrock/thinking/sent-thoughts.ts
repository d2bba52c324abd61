import { createHash } from "node:crypto";
import type { ReasoningBlock } from "../../../domain/chat/answer.ts";
import type { ChatMessage } from "../../../domain/chat/conversation.ts";
import {
  isObject,
  type JsonObject,
  listOf,
  nonEmpty,
  textOf,
} from "../../../domain/json-fields.ts";
import type { ReasoningContentBlock } from "../encode/converse-body.ts";
import { foundationModelOf } from "../models/facts.ts";

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
  if (block.kind === "redacted") return { reasoningContent: { redactedContent: block.data } };
  const { text, signature } = block;
  return { reasoningContent: { reasoningText: { text, signature } } };
}

/**
 * A model recognises only its own unchanged thoughts, and refuses a whole request that contains
 * others. So thoughts are sealed for callers: the provider's signature is preceded by a digest of
 * the signature, of the thoughts, and of the model. Thoughts without a valid seal are not sent on.
 */
export class ThoughtSeal {
  readonly #model: string;

  /** A foundation model is the same in all its profiles. Behind an ARN, the ARN identifies it. */
  constructor(identifier: string) {
    this.#model = foundationModelOf(identifier) ?? identifier;
  }

  seal(block: ReasoningBlock): ReasoningBlock {
    return block.kind === "signed"
      ? { ...block, signature: this.#sealed(block.text, block.signature) }
      : { ...block, data: this.#sealed("", block.data) };
  }

  /** The block as the model wrote it; undefined for one that this model did not write like that. */
  open(block: ReasoningBlock): ReasoningBlock | undefined {
    if (block.kind === "signed") {
      const signature = this.#opened(block.text, block.signature);
      return signature === undefined ? undefined : { ...block, signature };
    }
    const data = this.#opened("", block.data);
    return data === undefined ? undefined : { ...block, data };
  }

  #sealed(text: string, secret: string): string {
    return `${this.#digest(text, secret)}.${secret}`;
  }

  #opened(text: string, sealed: string): string | undefined {
    const secret = sealed.slice(digestLength + 1);
    return this.#sealed(text, secret) === sealed ? secret : undefined;
  }

  #digest(text: string, secret: string): string {
    const hash = createHash("sha256");
    for (const part of [this.#model, secret, text]) hash.update(part).update("\0");
    return hash.digest("base64url").slice(0, digestLength);
  }
}

/** In characters. Only chance matches must be excluded: forging a seal has no benefit. */
const digestLength = 16;
