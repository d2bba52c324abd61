import type { AnswerFormat, Conversation } from "../domain/chat/conversation.ts";
import { nearestEffort } from "../domain/chat/thinking-effort.ts";
import { flagOf, isObject, objectOf, textOf } from "../domain/json-fields.ts";
import { fieldNames, fieldsBeyond } from "./fields.ts";

/** The format of an answer. `within`: the field with the object that has the schema, in chat. */
export function readFormat(format: unknown, within?: string): AnswerFormat | undefined {
  if (!isObject(format)) return undefined;
  const { type } = format;
  if (type !== "json_schema") {
    const extra = fieldsBeyond(format, typeField);
    return { type: type === "json_object" ? "json" : "text", extra };
  }
  const isNested = within !== undefined;
  const json = isNested ? (objectOf(format[within]) ?? {}) : format;
  return {
    type: "schema",
    name: textOf(json["name"]),
    description: textOf(json["description"]),
    schema: objectOf(json["schema"]),
    strict: flagOf(json["strict"]),
    extra: isNested ? fieldsBeyond(format, typeField, within) : undefined,
    inner: fieldsBeyond(json, schemaFields, isNested ? undefined : "type"),
  };
}

const typeField = fieldNames("type");
const schemaFields = fieldNames("name description schema strict");

/** The effort that was asked for, or the one for the budget that was. */
export function effortOf({ thinking }: Conversation): string | undefined {
  if (thinking === undefined) return undefined;
  const { effort, budget } = thinking;
  return effort ?? (budget === undefined ? undefined : nearestEffort(budget));
}
