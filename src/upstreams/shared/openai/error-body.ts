import {
  isObject,
  type JsonObject,
  listOf,
  nonEmpty,
  objectOf,
  parseObject,
} from "../../../domain/json-fields.ts";

/** Errors within errors that are looked into. */
const mostDepth = 4;

/**
 * The error under a body's `error` or `errors`: an object, which may hold another one, or a text
 * with code and status beside it. Undefined when there is none; some servers send `"error": null`,
 * or an object that says nothing, along with an answer.
 */
export function errorIn(body: JsonObject, depth = 0): JsonObject | undefined {
  // The last is Amazon's, of a path that it does not know.
  const given = body["error"] ?? body["errors"] ?? body["Output"];
  if (given === undefined || given === null) return undefined;
  const error = listOf(given) === undefined ? given : listOf(given)?.[0];
  if (isObject(error)) {
    if (Object.values(error).every(isNothing)) return undefined;
    const inner = depth < mostDepth ? errorIn(error, depth + 1) : undefined;
    return inner ?? error;
  }
  if (error === true) return body;
  const message = nonEmpty(error);
  // Beside a message of its own, a text is only the title of the error.
  return message === undefined ? undefined : { ...body, message: ownMessage(body) ?? message };
}

/** As one-api fills in the fields of an error that there was not; a code of 0 means success. */
function isNothing(value: unknown): boolean {
  return value === null || value === "" || value === 0;
}

/** The message of an error in OpenAI's, FastAPI's and proxies' forms. */
export function messageOf(body: JsonObject): string | undefined {
  const { detail } = body;
  return ownMessage(body) ?? nonEmpty(detail) ?? nonEmpty(detailsOf(detail).join("; "));
}

/**
 * The message of the provider behind a proxy, which repeats it as JSON in its own message or, as
 * OpenRouter, in `metadata.raw`. Only the words are read from there: a message may quote a caller.
 */
export function innermostMessage(message: string, body: JsonObject | undefined): string {
  const raw = nonEmpty(objectOf(body?.["metadata"])?.["raw"]);
  let innermost = raw === undefined || /^\s*</.test(raw) ? message : raw;
  for (let depth = 0; depth < mostDepth; depth += 1) {
    const object = firstObject(innermost.trim());
    const inner = object && messageOf(errorIn(object) ?? object);
    if (inner === undefined) break;
    innermost = inner;
  }
  return innermost;
}

function firstObject(json: string): JsonObject | undefined {
  if (json.startsWith("{")) return parseObject(json);
  // A list has the error as its only item.
  return json.startsWith("[") ? parseObject(json.slice(1, -1)) : undefined;
}

function ownMessage({ message, msg }: JsonObject): string | undefined {
  const several = listOf(message)?.filter((each) => typeof each === "string");
  return nonEmpty(message) ?? nonEmpty(several?.join("; ")) ?? nonEmpty(msg);
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
