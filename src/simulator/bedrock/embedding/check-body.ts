import { isList, isRecord, type JsonRecord } from "../../read-json.ts";
import { invalid, type BedrockError } from "../bedrock-error.ts";

/** The result of an InvokeModel call. */
export interface EmbeddingResult {
  readonly promptTokens: number;
  /** The body of the answer. */
  readonly answer: JsonRecord;
}

/** The rule for a part of InvokeModel's body, which differs by model. */
export interface Rule {
  readonly type?: "String" | "Boolean" | "Number" | "JSONArray" | "JSONObject";
  readonly values?: readonly unknown[];
  readonly range?: readonly [number, number];
  /** Of lists, and of texts in UTF-16 units, as the provider's validator counts. */
  readonly length?: readonly [number, number];
  readonly items?: Rule;
  /** Names that end in `!` are required; unknown names are refused. */
  readonly keys?: Readonly<Record<string, Rule>>;
  /** Errors about its length omit its path. */
  readonly isNameless?: boolean;
}

/** Throws `BedrockError` with the texts of the models' validator. */
export function checkBody(value: unknown, rule: Rule, at = "#"): void {
  const { type, values, length, range, items, isNameless } = rule;
  if (values?.includes(value) === false) {
    throw malformed(`${at}: ${String(value)} is not a valid enum value`);
  }
  if (type !== undefined && typeOf(value) !== type) {
    throw malformed(`${at}: expected type: ${type}`);
  }
  if (typeof value === "number" && range !== undefined) {
    const [lowest, highest] = range;
    if (value < lowest) throw malformed(`${at}: ${value} is not greater or equal to ${lowest}`);
    if (value > highest) throw malformed(`${at}: ${value} is not less or equal to ${highest}`);
  }
  if ((typeof value === "string" || isList(value)) && length !== undefined) {
    const [lowest, highest] = length;
    const { length: size } = value;
    const [least, most, found] = isList(value)
      ? (["minimum item count", "maximum item count", "found"] as const)
      : (["minLength", "maxLength", "actual"] as const);
    const place = isNameless === true ? "" : `${at}: `;
    if (size < lowest) throw malformed(`${place}expected ${least}: ${lowest}, ${found}: ${size}`);
    if (size > highest) throw malformed(`${place}expected ${most}: ${highest}, ${found}: ${size}`);
  }
  if (isList(value) && items !== undefined) {
    for (const [index, item] of value.entries()) checkBody(item, items, `${at}/${index}`);
  }
  if (isRecord(value) && rule.keys !== undefined) checkKeys(value, rule.keys, at);
}

function checkKeys(value: JsonRecord, keys: Readonly<Record<string, Rule>>, at: string): void {
  const known = Object.keys(keys).map((key) => key.replace("!", ""));
  const missing = known.find((key) => `${key}!` in keys && value[key] === undefined);
  if (missing !== undefined) throw malformed(`#: required key [${missing}] not found`);
  const extra = Object.keys(value).find((key) => !known.includes(key));
  if (extra !== undefined) throw malformed(`#: extraneous key [${extra}] is not permitted`);
  for (const [key, rule] of Object.entries(keys)) {
    const name = key.replace("!", "");
    if (value[name] !== undefined) checkBody(value[name], rule, `${at}/${name}`);
  }
}

function typeOf(value: unknown): string {
  if (isList(value)) return "JSONArray";
  if (isRecord(value)) return "JSONObject";
  const name = typeof value;
  return name.charAt(0).toUpperCase() + name.slice(1);
}

export function checkTokens(count: number, limit: number): void {
  if (count <= limit) return;
  throw invalid(
    `400 Bad Request: Too many input tokens. Max input tokens: ${limit}, request input token ` +
      `count: ${count}`,
  );
}

export function malformed(detail: string): BedrockError {
  return invalid(`Malformed input request: ${detail}, please reformat your input and try again.`);
}
