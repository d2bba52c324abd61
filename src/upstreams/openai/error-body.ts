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

/** The field that an error names, in OpenAI's and FastAPI's forms. */
export function paramOf({ param, detail }: JsonObject): unknown {
  if (nonEmpty(param) !== undefined) return param;
  // FastAPI's path begins with where the field is: in the body.
  const [, ...path] = listOf(objectsIn(detail)[0]?.["loc"]) ?? [];
  return path.length === 0 ? undefined : path.join(".");
}

/** FastAPI lists what it could not read, together with the values; only the messages are used. */
function detailsOf(detail: unknown): readonly string[] {
  return objectsIn(detail)
    .map((each) => ownMessage(each) ?? nonEmpty(each["error"]))
    .filter((message) => message !== undefined);
}

function objectsIn(detail: unknown): readonly JsonObject[] {
  return isObject(detail) ? [detail] : (listOf(detail) ?? []).filter(isObject);
}
