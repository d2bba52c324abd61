import { brokenAnswer } from "../../../domain/errors/upstream-failure.ts";
import { checkChoiceCount } from "../../shared/answer-bounds.ts";
import { isObject, listOf, objectOf, type JsonObject } from "../../shared/json-fields.ts";
import { parseAnswer } from "../read-answer.ts";

/** A whole `chat.completion`. Throws `UpstreamFailure` for errors and for anything else. */
export function readWhole(json: string): JsonObject {
  const answer = parseAnswer(json, "choices");
  const choices = listOf(answer["choices"]) ?? [];
  if (choices.length === 0) throw brokenAnswer("the answer has no choices");
  checkChoiceCount(choices.length);
  return answer;
}

/** A choice of a whole answer. Servers may omit fields, but not the message. */
export function checkWholeChoice(value: unknown): JsonObject {
  const choice = objectOf(value);
  const message = choice && messageOf(choice);
  if (choice === undefined || message === undefined) throw brokenAnswer("a choice has no message");
  const calls = message["tool_calls"] ?? [];
  if (!Array.isArray(calls)) throw brokenAnswer("the tool calls of a message are not a list");
  if (!calls.every(isObject)) throw brokenAnswer("a tool call is not an object");
  return choice;
}

/** Whether a choice has content, even if it is empty. */
export function hasContent(choice: JsonObject): boolean {
  return (messageOf(choice)?.["content"] ?? undefined) !== undefined;
}

function messageOf(choice: JsonObject): JsonObject | undefined {
  return objectOf(choice["message"]) ?? objectOf(choice["delta"]);
}
