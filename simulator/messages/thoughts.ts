import { createHash } from "node:crypto";
import { type JsonRecord, listOf, recordOf, stringOf } from "../json.ts";
import { invalid } from "./errors.ts";

/**
 * The signature by which a model recognises its own thoughts, unchanged. The newest models bind
 * them to everything before: instructions, tools and messages, cache marks apart.
 */
export function signatureOf(body: JsonRecord, before: readonly unknown[], thought: string): string {
  const model = stringOf(body["model"]);
  const prefix = bindsThoughts.test(model) ? [body["system"], body["tools"], before] : [];
  const text = JSON.stringify([model, thought, prefix], (key, value: unknown) =>
    key === "cache_control" ? undefined : value,
  );
  return createHash("sha512").update(text).digest("base64");
}

const bindsThoughts = /fable|mythos|-5-5\b/;

/** Throws for thoughts that the model did not sign like that. */
export function checkThoughts(body: JsonRecord): void {
  const messages = listOf(body["messages"]).map(recordOf);
  for (const [index, { role, content }] of messages.entries()) {
    const blocks = listOf(content).map(recordOf);
    for (const [place, block] of blocks.entries()) {
      const isRedacted = block["type"] === "redacted_thinking";
      if (block["type"] !== "thinking" && !isRedacted) continue;
      const at = `messages.${index}.content.${place}`;
      if (role !== "assistant") throw invalid(`${at}: thinking blocks are for assistants only`);
      const before = [...messages.slice(0, index), { role, content: blocks.slice(0, place) }];
      const text = isRedacted ? "" : stringOf(block["thinking"]);
      const sent = block[isRedacted ? "data" : "signature"];
      if (sent === signatureOf(body, before, text)) continue;
      throw invalid(
        `${at}: Invalid \`${isRedacted ? "data" : "signature"}\`: the block is bound to a ` +
          "different conversation",
      );
    }
  }
}
