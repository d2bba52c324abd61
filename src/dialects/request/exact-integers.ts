import { mayBeInexact, parseExact } from "../../domain/chat/tool-input.ts";
import { replaceHalves } from "../../domain/chat/well-formed.ts";
import { type JsonObject, objectOf } from "../../domain/json-fields.ts";
import { objectsIn } from "../../wires/fields.ts";

/**
 * A seed has 64 bits, a number 53. If parsing has rounded the seed, returns a copy of the body
 * whose seed has the digits that its text has for this number; otherwise the body itself.
 */
export function restoreSeed(body: JsonObject, text: string): JsonObject {
  const { seed } = body;
  if (typeof seed !== "number" || Number.isSafeInteger(seed)) return body;
  const written = [...text.matchAll(/"seed"\s*:\s*(-?\d+)/g)].map(([, digits = ""]) => digits);
  const digits = written.findLast((each) => Number(each) === seed);
  return digits === undefined ? body : { ...body, seed: JSON.rawJSON(digits) };
}

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
  const blocks = objectsIn(body["messages"]).flatMap(({ content }) => objectsIn(content));
  return blocks.filter(({ type }) => type === "tool_use");
}

/** The depth of a body is bounded. */
function hasInexact(value: unknown): boolean {
  if (typeof value === "number") return Number.isInteger(value) && !Number.isSafeInteger(value);
  return typeof value === "object" && value !== null && Object.values(value).some(hasInexact);
}
