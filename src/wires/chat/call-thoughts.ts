import type { AnswerReasoning, ToolCallExtra } from "../../domain/chat/answer.ts";
import type { Block, ReasoningBlock } from "../../domain/chat/conversation.ts";
import { isObject, type JsonObject, parseObject } from "../../domain/json-fields.ts";

/**
 * Google's servers sign calls in a field of the call, and refuse a conversation without it. Other
 * wires than chat have no place for the field, but one for thoughts that only their author
 * understands: there it is a redacted thought before its call. `id` is the call's. Undefined: the
 * call is not signed. Source: Gemini's documentation of thought signatures, section "OpenAI".
 */
export function callThought(
  id: string,
  extra: ToolCallExtra | undefined,
): AnswerReasoning | undefined {
  const content = extra?.call?.[field];
  if (!isObject(content)) return undefined;
  const opaque = JSON.stringify({ call: id, [field]: content });
  return { type: "reasoning", text: "", opaque, isRedacted: true };
}

const field = "extra_content";

/**
 * In place of a signature, for a call that another model made or whose signature is lost: Google's
 * servers refuse a call with neither. Source: the same page, section "FAQs".
 */
export const foreignCall = { google: { thought_signature: "skip_thought_signature_validator" } };

/** The fields of signed calls by the ids of the calls, from the thoughts before them. */
export function callFieldsIn(blocks: readonly Block[]): ReadonlyMap<string, JsonObject> {
  const fields = new Map<string, JsonObject>();
  for (const block of blocks) {
    const read = block.type === "reasoning" ? readCallThought(block) : undefined;
    if (read !== undefined) fields.set(read.id, { [field]: read.content });
  }
  return fields;
}

function readCallThought({ opaque, isRedacted }: ReasoningBlock) {
  if (isRedacted !== true || opaque?.startsWith("{") !== true) return undefined;
  const { call: id, [field]: content } = parseObject(opaque) ?? {};
  return typeof id === "string" && isObject(content) ? { id, content } : undefined;
}
