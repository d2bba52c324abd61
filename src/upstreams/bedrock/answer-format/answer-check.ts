import type { ChatRequest } from "../../../domain/chat.ts";
import { isObject } from "../../shared/json-fields.ts";
import { failedKeyword, tooMuch } from "./schema-check.ts";

/** What is wrong with the text of a whole answer, without a word of it; undefined for nothing. */
export type AnswerCheck = (text: string) => string | undefined;

/** The check of answers to a request; undefined for one that asks for no form. */
export function answerCheckOf(request: ChatRequest): AnswerCheck | undefined {
  const format = request.response_format ?? undefined;
  switch (format?.type) {
    case "json_object":
      return (text) => (isObject(parsed(text)) ? undefined : "it is no JSON object");
    case "json_schema": {
      const schema = format.json_schema.schema ?? { type: "object" };
      return (text) => {
        const value = parsed(text);
        if (value === undefined) return "it is no JSON";
        const keyword = failedKeyword(value, schema);
        if (keyword === tooMuch) return "its check against the JSON schema takes too many steps";
        return keyword === undefined ? undefined : `it fails the JSON schema's '${keyword}'`;
      };
    }
    case "text":
    case undefined:
      return undefined;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
