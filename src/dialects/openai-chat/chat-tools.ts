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
} from "../request/checks.ts";
import { toolWith } from "../request/json-schema.ts";
import { grammar, toolChoiceOr, toolName } from "../request/openai-fields.ts";

/**
 * Anthropic's field on messages, parts and tools, as callers of other gateways send it: it ends the
 * part of a prompt that a provider may cache. Without a type it has no effect.
 */
export const cacheControl = {
  cache_control: object({
    optional: { type: oneOf(["ephemeral"]), ttl: oneOf(["5m", "1h"]) },
  }),
};

/** A description may exceed OpenAI's 1024 characters: many do, and other vendors accept it. */
const functionDefinition = toolWith(
  "parameters",
  object({
    required: { name: toolName(64) },
    optional: { ...cacheControl, description: text(), parameters: anyObject, strict: boolean },
  }),
);

const customFormat = tagged("type", {
  text: object(),
  grammar: object({ required: { grammar } }),
});

const tool = tagged("type", {
  function: object({ required: { function: functionDefinition }, optional: cacheControl }),
  custom: object({
    optional: cacheControl,
    required: {
      custom: object({
        required: { name: toolName(64) },
        optional: { description: text(), format: customFormat },
      }),
    },
  }),
});

/** Lists may be empty: clients send `[]` for "none", which is removed. */
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

export const toolChoice = toolChoiceOr(
  tagged("type", {
    function: object({ required: { function: named } }),
    custom: object({ required: { custom: named } }),
    allowed_tools: object({ required: { allowed_tools: allowedTools } }),
  }),
);

export const functionCall = textOrObject(
  oneOf(["none", "auto"]),
  named,
  "one of one of 'none' or 'auto' or object",
);
