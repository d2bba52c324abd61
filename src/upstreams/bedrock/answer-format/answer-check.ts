import { type Conversation, fieldOf } from "../../../domain/chat/conversation.ts";
import type { UpstreamFailureDetails } from "../../../domain/errors/upstream-failure.ts";
import { isObject, parseJson } from "../../../domain/json-fields.ts";
import type { AnswerCheck } from "../../shared/answers/answer-context.ts";
import { failedKeyword, tooMuch } from "./schema-check.ts";

/** The check of answers to a request; undefined for one that requires no form. */
export function answerCheckOf(request: Conversation): AnswerCheck | undefined {
  const { format } = request;
  switch (format?.type) {
    case "json":
      return (text) => (isObject(parseJson(text)) ? undefined : unfit("it is not a JSON object"));
    case "schema": {
      const schema = format.schema ?? { type: "object" };
      const field = fieldOf(request, "format");
      return (text) => {
        const value = parseJson(text);
        if (value === undefined) return unfit("it is not JSON");
        const keyword = failedKeyword(value, schema);
        if (keyword === tooMuch) return uncheckable(field);
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
function uncheckable(param: string): UpstreamFailureDetails {
  return {
    kind: "unsupported",
    message:
      "Checking an answer against the JSON schema takes too many steps. Send a simpler schema.",
    param,
  };
}
