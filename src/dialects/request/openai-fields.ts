/** Fields that have one form in all of OpenAI's APIs, and in those of others. */
import {
  boolean,
  type Check,
  decimal,
  integer,
  keyAtMost,
  map,
  object,
  oneOf,
  text,
  textOrObject,
  Violation,
  wrongType,
} from "./checks.ts";

/** Root fields of chat and Responses. */
export const sharedFields = {
  stream: boolean,
  store: boolean,
  temperature: decimal({ minimum: 0, maximum: 2 }),
  top_p: decimal({ minimum: 0, maximum: 1 }),
  top_logprobs: integer({ minimum: 0, maximum: 20 }),
  parallel_tool_calls: boolean,
  metadata: map({
    key: keyAtMost(64),
    value: text({ maximumLength: 512 }),
    maximumEntries: 16,
  }),
  user: text({ maximumLength: 64 }),
  safety_identifier: text({ maximumLength: 64 }),
  prompt_cache_key: text(),
};

export const effort = oneOf(["none", "minimal", "low", "medium", "high", "xhigh", "max"]);
export const verbosity = oneOf(["low", "medium", "high"]);

export const formatName = text({
  mayBeEmpty: false,
  maximumLength: 64,
  pattern: /^[a-zA-Z0-9_-]+$/,
});

/** OpenAI's newer models and other vendors accept dots as well. */
export function toolName(maximumLength: number): Check {
  return text({ mayBeEmpty: false, maximumLength, pattern: /^[a-zA-Z0-9_.-]+$/ });
}

export const grammar = object({
  required: { definition: text(), syntax: oneOf(["lark", "regex"]) },
});

/** A choice among tools: a word, or an object. The doubled "one of" is OpenAI's. */
export function toolChoiceOr(choice: Check): Check {
  const words = oneOf(["none", "auto", "required"]);
  return textOrObject(words, choice, "one of one of 'none', 'auto', or 'required' or object");
}

const imageUrlPattern = /^(?:https?:|data:)/i;

export function imageUrl(value: unknown): Violation | undefined {
  if (typeof value !== "string") return wrongType("a string", value);
  if (imageUrlPattern.test(value)) return undefined;
  return new Violation(
    "invalid_value",
    (path) => `Invalid '${path}'. Expected a valid URL, but got a value with an invalid format.`,
  );
}
