import { isObject } from "../../../domain/json-object.ts";
import {
  anyObject,
  boolean,
  type Check,
  list,
  object,
  oneOf,
  tagged,
  text,
  textOrObject,
  type Violation,
} from "../../request/checks.ts";
import { checkParameters } from "./json-schema.ts";

/**
 * Anthropic's field on messages, parts and tools, as callers of other gateways send it: it ends the
 * part of a prompt that a provider may cache. Without a type it has no effect.
 */
export const cacheControl = {
  cache_control: object({
    optional: { type: oneOf(["ephemeral"]), ttl: oneOf(["5m", "1h"]) },
  }),
};

/** OpenAI's newer models and other vendors accept dots as well. */
const functionName = text({
  mayBeEmpty: false,
  maximumLength: 64,
  pattern: /^[a-zA-Z0-9_.-]+$/,
});

/** A description may exceed OpenAI's 1024 characters: many do, and other vendors accept it. */
const functionFields = object({
  required: { name: functionName },
  optional: { ...cacheControl, description: text(), parameters: anyObject, strict: boolean },
});

function functionDefinition(value: unknown): Violation | undefined {
  const violation = functionFields(value);
  if (violation !== undefined || !isObject(value)) return violation;
  const { name, parameters } = value;
  return checkParameters(parameters, String(name))?.insideField("parameters");
}

const customFormat = tagged("type", {
  text: object(),
  grammar: object({
    required: {
      grammar: object({ required: { definition: text(), syntax: oneOf(["lark", "regex"]) } }),
    },
  }),
});

const tool = tagged("type", {
  function: object({ required: { function: functionDefinition }, optional: cacheControl }),
  custom: object({
    optional: cacheControl,
    required: {
      custom: object({
        required: { name: functionName },
        optional: { description: text(), format: customFormat },
      }),
    },
  }),
});

/** Lists may be empty: clients send `[]` for "none", and `drop-empty-fields.ts` removes it. */
const offers = { of: "objects", maximumLength: 128, mayBeEmpty: true };

export const tools: Check = list(tool, offers);
export const functions: Check = list(functionDefinition, offers);

const named = object({ required: { name: text() } });

const allowedTools = object({
  required: {
    mode: oneOf(["auto", "required"]),
    tools: list(object({ optional: { function: object(), custom: object() } }), { of: "objects" }),
  },
});

// The doubled "one of" is OpenAI's.
export const toolChoice: Check = textOrObject({
  text: oneOf(["none", "auto", "required"]),
  object: tagged("type", {
    function: object({ required: { function: named } }),
    custom: object({ required: { custom: named } }),
    allowed_tools: object({ required: { allowed_tools: allowedTools } }),
  }),
  expected: "one of one of 'none', 'auto', or 'required' or object",
});

export const functionCall: Check = textOrObject({
  text: oneOf(["none", "auto"]),
  object: named,
  expected: "one of one of 'none' or 'auto' or object",
});
