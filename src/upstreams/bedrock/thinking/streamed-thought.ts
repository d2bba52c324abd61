import { brokenAnswer } from "../../../domain/errors/upstream-failure.ts";
import type { ReasoningBlock } from "../../../domain/chat/chat.ts";
import { nonEmpty, objectOf, textOf, type JsonObject } from "../../shared/json-fields.ts";

/** Longest block of thoughts, in characters of all its parts; real ones are far shorter. */
const longestThought = 4 * 1024 * 1024;

/** Joins a streamed block of thoughts: it must be sent back whole. */
export class StreamedThought {
  #text = "";
  #signature = "";
  #data = "";

  /** `reasoning`: the union of a `contentBlockDelta`. Throws `UpstreamFailure` when it is too long. */
  push(reasoning: JsonObject): void {
    this.#text += textOf(reasoning["text"]) ?? "";
    this.#signature += textOf(reasoning["signature"]) ?? "";
    this.#data += textOf(reasoning["redactedContent"]) ?? "";
    const length = this.#text.length + this.#signature.length + this.#data.length;
    if (length > longestThought) throw brokenAnswer("the thoughts are too long");
  }

  /** Undefined for thoughts without a signature: no model needs those back. */
  block(): ReasoningBlock | undefined {
    return blockOf(this.#text, this.#signature, this.#data);
  }
}

/** `reasoning`: the union of a whole answer's `reasoningContent`. */
export function wholeThought(reasoning: JsonObject): ReasoningBlock | undefined {
  const { text, signature } = objectOf(reasoning["reasoningText"]) ?? {};
  const data = nonEmpty(reasoning["redactedContent"]) ?? "";
  return blockOf(textOf(text) ?? "", textOf(signature) ?? "", data);
}

function blockOf(text: string, signature: string, data: string): ReasoningBlock | undefined {
  if (signature !== "") return { kind: "signed", text, signature };
  return data === "" ? undefined : { kind: "redacted", data };
}
