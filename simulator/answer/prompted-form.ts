import { isRecord, type JsonRecord, parseJson, recordOf } from "../json.ts";
import type { OutputForm, Turn } from "./prompt.ts";

/**
 * The form of the answer that a prompt asks for in words, as libraries do that use no field of the
 * wire: "Respond with JSON", or a JSON schema in the instructions.
 */
export function promptedForm(turns: readonly Turn[]): OutputForm {
  const user = turns.findLast((turn) => turn.role === "user");
  const asking = turns.filter((turn) => turn.role === "system" || turn === user);
  const text = asking.map((turn) => turn.text).join("\n\n");
  if (!asksForJson(text)) return { kind: "text" };
  const schema = schemaIn(text);
  return schema === undefined ? { kind: "json" } : { kind: "schema", schema };
}

/** Whether the text asks for JSON; a mere mention does not count. */
function asksForJson(text: string): boolean {
  return (
    /\bone JSON object\b/i.test(text) ||
    /\b(?:respond|reply|answer|return|output)\b[^.\n]{0,40}\bJSON\b/i.test(text) ||
    /\bin json that match the following json_schema\b/i.test(text)
  );
}

/** The first paragraph that is a JSON schema of an object. */
function schemaIn(text: string): JsonRecord | undefined {
  return text
    .split(/\n\s*\n/)
    .map((paragraph) => readObject(paragraph.slice(paragraph.indexOf("{"))))
    .find(({ type, properties, $ref }) => isRecord(properties) || (type === "object" && $ref));
}

function readObject(text: string): JsonRecord {
  try {
    return recordOf(parseJson(text.slice(0, text.lastIndexOf("}") + 1)));
  } catch {
    return {};
  }
}
