import { isList, type JsonRecord } from "../../read-json.ts";
import { invalid, type BedrockError } from "../bedrock-error.ts";

/** What a model makes of a checked body of InvokeModel. */
export interface EmbeddingRequest {
  readonly promptTokens: number;
  /** The body of the answer. */
  readonly answer: JsonRecord;
}

/** Throws unless the body has the required keys, and no others than these. */
export function checkKeys(
  body: JsonRecord,
  required: readonly string[],
  optional: readonly string[],
): void {
  const missing = required.find((key) => body[key] === undefined);
  if (missing !== undefined) throw malformed(`#: required key [${missing}] not found`);
  const extra = Object.keys(body).find((key) => ![...required, ...optional].includes(key));
  if (extra !== undefined) throw malformed(`#: extraneous key [${extra}] is not permitted`);
}

export function readChoice<Value>(
  body: JsonRecord,
  key: string,
  allowed: readonly Value[],
): Value | undefined {
  const value = body[key];
  if (value === undefined) return undefined;
  return chosen(value, `#/${key}`, allowed);
}

export function readChoices<Value>(
  body: JsonRecord,
  key: string,
  allowed: readonly Value[],
): readonly Value[] | undefined {
  const values = body[key];
  if (values === undefined) return undefined;
  if (!isList(values)) throw malformed(`#/${key}: expected type: JSONArray`);
  return values.map((value, index) => chosen(value, `#/${key}/${index}`, allowed));
}

function chosen<Value>(value: unknown, at: string, allowed: readonly Value[]): Value {
  const found = allowed.find((one) => one === value);
  if (found === undefined) throw malformed(`${at}: ${String(value)} is not a valid enum value`);
  return found;
}

/** Lengths count UTF-16 units, as the provider's validator does. */
export function checkLength(text: string, at: string, longest: number): void {
  if (text === "") throw malformed(`${at}expected minLength: 1, actual: 0`);
  if (text.length > longest) {
    throw malformed(`${at}expected maxLength: ${longest}, actual: ${text.length}`);
  }
}

export function tooManyTokens(limit: number, count: number): BedrockError {
  return invalid(
    `400 Bad Request: Too many input tokens. Max input tokens: ${limit}, request input token ` +
      `count: ${count}`,
  );
}

export function malformed(detail: string): BedrockError {
  return invalid(`Malformed input request: ${detail}, please reformat your input and try again.`);
}
