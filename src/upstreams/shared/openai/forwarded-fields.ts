import type { ForwardedFields } from "../../../wires/chat/write-message.ts";
import fields from "./request-fields.json" with { type: "json" };

/**
 * The fields of OpenAI's public API, `reasoning_content`, which Sluice's own answers have, and the
 * operator's additions. Servers accept many others that choose another model, address or credential,
 * or that let a call use more than its limits. Embeddings are written field by field.
 */
export function forwardedFields(added: readonly string[]): ForwardedFields {
  return {
    root: new Set([...fields.root, ...added]),
    message: new Set([...fields.message, ...added]),
    part: new Set(["type", "prompt_cache_breakpoint", ...added]),
    // Answers have the sound, too, and callers send them back whole.
    spoken: new Set(["id", ...added]),
    call: new Set(["id", "type", "function", "custom", ...added]),
    callBody: new Set(["name", "arguments", "input", ...added]),
    media: new Set([...fields.media, ...added]),
  };
}
