import { isUtf8 } from "node:buffer";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { nextTurn, oneTurnBytes } from "../../domain/waiting/wait.ts";
import { releaseBytes } from "../../domain/chat/bytes.ts";
import { mayHoldHalves, replaceHalves } from "../../domain/chat/well-formed.ts";
import { wrongType } from "./checks.ts";
import { isObject, type JsonObject } from "../../domain/json-object.ts";

export interface JsonBody {
  readonly value: unknown;
  readonly text: string;
}

/**
 * Parses a request body whose depth and number of values are bounded already; its texts are well
 * formed. Throws 400 for invalid JSON or UTF-8. Each step of a large body has its own turn of the event loop. The bytes
 * are released, which halves the memory of a large body.
 */
export function parseJson(bytes: Uint8Array): JsonBody | Promise<JsonBody> {
  if (bytes.byteLength > oneTurnBytes) return parseInTurns(bytes);
  const needsMending = mayHoldHalves(bytes);
  const body = parse(decode(bytes));
  if (needsMending) replaceHalves(body.value);
  return body;
}

async function parseInTurns(bytes: Uint8Array): Promise<JsonBody> {
  const needsMending = mayHoldHalves(bytes);
  const text = decode(bytes);
  await nextTurn();
  const body = parse(text);
  await nextTurn();
  if (needsMending) {
    replaceHalves(body.value);
    await nextTurn();
  }
  return body;
}

const utf8 = new TextDecoder();

function decode(bytes: Uint8Array): string {
  // Checked first: a fatal decoder takes ten times as long to find a mistake.
  if (!isUtf8(bytes)) throw notJson(new TypeError("not UTF-8"));
  const text = utf8.decode(bytes);
  releaseBytes(bytes);
  return text;
}

function parse(text: string): JsonBody {
  try {
    return { value: JSON.parse(text), text };
  } catch (error) {
    throw notJson(error);
  }
}

function notJson(cause?: unknown): GatewayError {
  return new GatewayError("invalid_json", {
    message:
      "We could not parse the JSON body of your request. Send one JSON object in UTF-8, with the " +
      "header Content-Type: application/json.",
    cause,
  });
}

/** Refuses a body that is not an object with the error for invalid JSON, as OpenAI does. */
export function requireObject(body: unknown): JsonObject {
  if (isObject(body)) return body;
  throw notJson();
}

export function requireModel(body: JsonObject): string {
  const model = body["model"];
  if (model === undefined || model === null || model === "") {
    throw new GatewayError("invalid_body", { message: "you must provide a model parameter" });
  }
  if (typeof model === "string") return model;
  throw wrongType("a string", model).insideField("model").toError();
}
