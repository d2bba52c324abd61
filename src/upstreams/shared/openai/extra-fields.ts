import type { ExtraFields, TokenDetails } from "../../../domain/chat/answer.ts";
import fields from "./answer-fields.json" with { type: "json" };
import { countOf, type JsonObject, objectOf } from "../../../domain/json-fields.ts";

type Names = Readonly<Record<string, true>>;

/** As an object, because each chunk asks for each of its fields: a set takes twice as long. */
function names(list: readonly string[]): Names {
  return Object.fromEntries(list.map((name) => [name, true]));
}

/**
 * The fields that Sluice reads or writes itself, by their place in an answer. `reasoning` is
 * OpenRouter's and Ollama's name of thoughts, and Moonshot counts in a choice, too.
 */
export const knownFields = {
  answer: names(fields.answer),
  choice: names(fields.choice),
  message: names(fields.message),
  call: names(fields.call),
  body: names(fields.body),
};

/**
 * Fields that stay here: names of the provider and of its own hosts, which aliases hide; the
 * operator's costs; padding; and a name that changes objects in JavaScript.
 */
const withheld: ReadonlySet<string> = new Set(fields.withheld);

/** The fields of an object that are not known, unless they are empty; undefined if there are none. */
export function extraFields(object: JsonObject, known: Names): ExtraFields | undefined {
  let extra: Record<string, unknown> | undefined;
  for (const field in object) {
    if (known[field] === true || withheld.has(field)) continue;
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
  const counts = objectOf(usage);
  if (counts === undefined) return undefined;
  const input = otherCounts(objectOf(counts["prompt_tokens_details"]));
  const output = otherCounts(objectOf(counts["completion_tokens_details"]));
  if (input === undefined && output === undefined) return undefined;
  return { input: input ?? {}, output: output ?? {} };
}

const countedDetails: ReadonlySet<string> = new Set(fields.counted);

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
