import { mayBeInexact, parseExact } from "../../domain/chat/tool-input.ts";
import { replaceHalves } from "../../domain/chat/well-formed.ts";
import { isObject, type JsonObject, listOf, objectOf } from "../../domain/json-fields.ts";

/**
 * Gives the inputs of calls the integers that stood in the text of the body, and that parsing has
 * rounded: models pass ids of 64 bits to tools, and must read the same ones again.
 */
export function restoreInputs(body: JsonObject, text: string): JsonObject {
  if (!mayBeInexact(text)) return body;
  const calls = callsIn(body);
  if (!calls.some(({ input }) => hasInexact(input))) return body;
  const exact = parseExact(text);
  replaceHalves(exact);
  callsIn(objectOf(exact) ?? {}).forEach(({ input }, index) => {
    const call = calls[index];
    if (call !== undefined && hasInexact(call["input"])) Reflect.set(call, "input", input);
  });
  return body;
}

function callsIn(body: JsonObject): readonly JsonObject[] {
  return (listOf(body["messages"]) ?? []).flatMap((message) => {
    const blocks = listOf(objectOf(message)?.["content"]) ?? [];
    return blocks.filter(isObject).filter(({ type }) => type === "tool_use");
  });
}

/** The depth of a body is bounded. */
function hasInexact(value: unknown): boolean {
  if (typeof value === "number") return Number.isInteger(value) && !Number.isSafeInteger(value);
  return typeof value === "object" && value !== null && Object.values(value).some(hasInexact);
}
