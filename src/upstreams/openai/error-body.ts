import { isObject, listOf, nonEmpty, type JsonObject } from "../shared/json-fields.ts";

/**
 * The error under a body's `error`: an object, or a text with code and status beside it. Undefined
 * when there is none; some servers send `"error": null` along with an answer.
 */
export function errorIn(body: JsonObject): JsonObject | undefined {
  if (body["error"] === undefined || body["error"] === null) return undefined;
  const error = listOf(body["error"])?.[0] ?? body["error"];
  if (isObject(error)) return error;
  if (error === true) return body;
  const message = nonEmpty(error);
  return message === undefined ? undefined : { ...body, message };
}

/** The message of an error in OpenAI's, FastAPI's and proxies' forms. */
export function messageOf(body: JsonObject): string | undefined {
  const { detail } = body;
  return ownMessage(body) ?? nonEmpty(detail) ?? nonEmpty(detailsOf(detail).join("; "));
}

function ownMessage({ message, msg }: JsonObject): string | undefined {
  return nonEmpty(message) ?? nonEmpty(msg);
}

/** FastAPI lists what it could not read, together with the values; only the messages are used. */
function detailsOf(detail: unknown): readonly string[] {
  const details = isObject(detail) ? [detail] : (listOf(detail) ?? []).filter(isObject);
  return details
    .map((each) => ownMessage(each) ?? nonEmpty(each["error"]))
    .filter((message) => message !== undefined);
}
