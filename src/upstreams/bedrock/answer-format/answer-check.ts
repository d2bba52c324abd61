import type { ChatRequest } from "../../../domain/chat/chat.ts";
import type { UpstreamFailureDetails } from "../../../domain/errors/upstream-failure.ts";
import { isObject } from "../../shared/json-fields.ts";
import { failedKeyword, tooMuch } from "./schema-check.ts";

/** Describes what is wrong with a whole answer, without quoting it; undefined if nothing is. */
export type AnswerCheck = (text: string) => UpstreamFailureDetails | undefined;

/** The check of answers to a request; undefined for one that requires no form. */
export function answerCheckOf(request: ChatRequest): AnswerCheck | undefined {
  const format = request.response_format ?? undefined;
  switch (format?.type) {
    case "json_object":
      return (text) => (isObject(parsed(text)) ? undefined : unfit("it is not a JSON object"));
    case "json_schema": {
      const schema = format.json_schema.schema ?? { type: "object" };
      return (text) => {
        const value = parsed(text);
        if (value === undefined) return unfit("it is not JSON");
        const keyword = failedKeyword(value, schema);
        if (keyword === tooMuch) return uncheckable;
        return keyword === undefined ? undefined : unfit(`it fails the JSON schema's '${keyword}'`);
      };
    }
    case "text":
    case undefined:
      return undefined;
  }
}

function unfit(message: string): UpstreamFailureDetails {
  return { kind: "unfit-answer", message };
}

/** Caused by the caller's schema: checking another answer would most likely take as long. */
const uncheckable: UpstreamFailureDetails = {
  kind: "unsupported",
  message:
    "Checking an answer against the JSON schema takes too many steps. Send a simpler schema.",
  param: "response_format",
};

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
