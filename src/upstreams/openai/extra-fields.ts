import type { ExtraFields, TokenDetails } from "../../domain/chat/chat.ts";
import { countOf, objectOf, type JsonObject } from "../shared/json-fields.ts";

// Whether Sluice reads or writes a field itself, by its place in an answer. Each chunk asks for each
// of its fields: a set takes five times as long as a switch.

export function isAnswerField(field: string): boolean {
  switch (field) {
    case "id":
    case "object":
    case "created":
    case "model":
    case "choices":
    case "usage":
    case "error":
    case "system_fingerprint":
    case "service_tier":
      return true;
    default:
      return false;
  }
}

export function isChoiceField(field: string): boolean {
  switch (field) {
    case "index":
    case "delta":
    case "message":
    case "finish_reason":
    case "logprobs":
    case "error":
    // Moonshot counts here too; the counts of an answer are in one place.
    case "usage":
      return true;
    default:
      return false;
  }
}

export function isMessageField(field: string): boolean {
  switch (field) {
    case "role":
    case "content":
    case "refusal":
    case "reasoning_content":
    case "tool_calls":
    case "function_call":
    case "error":
    // The same thoughts again, under OpenRouter's and Ollama's name.
    case "reasoning":
      return true;
    default:
      return false;
  }
}

export function isCallField(field: string): boolean {
  switch (field) {
    case "index":
    case "id":
    case "type":
    case "function":
    case "custom":
      return true;
    default:
      return false;
  }
}

export function isBodyField(field: string): boolean {
  return field === "name" || field === "arguments" || field === "input";
}

/**
 * Fields that stay here: names of the provider and of its own hosts, which aliases hide; the
 * operator's costs; padding; and a name that changes objects in JavaScript.
 */
const withheld: ReadonlySet<string> = new Set([
  "provider",
  "native_finish_reason",
  "model_id",
  "deployment",
  "api_base",
  "kv_transfer_params",
  "x_groq",
  "nvext",
  "cost",
  "cost_details",
  "is_byok",
  "obfuscation",
  "__proto__",
]);

/** The fields of an object that are not known, unless they are empty; undefined if there are none. */
export function extraFields(
  object: JsonObject,
  isKnownField: (field: string) => boolean,
): ExtraFields | undefined {
  let extra: Record<string, unknown> | undefined;
  for (const field in object) {
    if (isKnownField(field) || withheld.has(field)) continue;
    const value = object[field];
    // What an upstream's libraries note for themselves begins so, such as `_hidden_params`.
    if (isNone(value) || field.startsWith("_")) continue;
    extra ??= {};
    extra[field] = value;
  }
  return extra;
}

/** Servers fill fields that they do not use with null or an empty list. */
function isNone(value: unknown): boolean {
  return value === null || value === undefined || (Array.isArray(value) && value.length === 0);
}

/** Counts in the details of usage that Sluice does not count itself, such as `audio_tokens`. */
export function tokenDetails(usage: unknown): TokenDetails | undefined {
  const fields = objectOf(usage);
  if (fields === undefined) return undefined;
  const input = otherCounts(objectOf(fields["prompt_tokens_details"]));
  const output = otherCounts(objectOf(fields["completion_tokens_details"]));
  if (input === undefined && output === undefined) return undefined;
  return { input: input ?? {}, output: output ?? {} };
}

const countedDetails: ReadonlySet<string> = new Set([
  "cached_tokens",
  "cache_write_tokens",
  "cache_creation_tokens",
  "reasoning_tokens",
]);

function otherCounts(
  details: JsonObject | undefined,
): Readonly<Record<string, number>> | undefined {
  let counts: Record<string, number> | undefined;
  for (const name in details) {
    const count = countedDetails.has(name) || withheld.has(name) ? 0 : countOf(details[name]);
    // OpenAI's own details are 0 where nothing else is said.
    if (count === undefined || count === 0) continue;
    counts ??= {};
    counts[name] = count;
  }
  return counts;
}
