import type { AnswerFormat } from "../domain/chat/conversation.ts";
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
