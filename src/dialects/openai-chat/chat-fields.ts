/** Every root field of a chat request except `model`. Other fields pass unchecked. */
import { chatMessage, textContent } from "./chat-message.ts";
import { functionCall, functions, toolChoice, tools } from "./chat-tools.ts";
import { answerSchema } from "../request/json-schema.ts";
import { effort, formatName, sharedFields, verbosity } from "../request/openai-fields.ts";
import {
  boolean,
  type Check,
  decimal,
  integer,
  list,
  map,
  object,
  oneOf,
  tagged,
  text,
  textOrList,
  textOrObject,
  tokenIdKey,
} from "../request/checks.ts";

const tokenLimit = integer({ minimum: 1 });
const penalty = decimal({ minimum: -2, maximum: 2 });

const responseFormat = tagged("type", {
  json_object: object(),
  json_schema: object({
    required: {
      json_schema: object({
        required: { name: formatName },
        optional: { description: text(), schema: answerSchema, strict: boolean },
      }),
    },
  }),
  text: object(),
});

const audio = object({
  required: {
    voice: textOrObject(text(), object({ required: { id: text() } }), "one of a string or object"),
    format: oneOf(["wav", "aac", "mp3", "flac", "opus", "pcm16"]),
  },
});

const userLocation = tagged("type", {
  approximate: object({
    required: {
      approximate: object({
        optional: { city: text(), country: text(), region: text(), timezone: text() },
      }),
    },
  }),
});

export const chatFields: Check = object({
  required: { messages: list(chatMessage, { of: "objects", maximumLength: 2048 }) },
  optional: {
    ...sharedFields,
    n: integer({ minimum: 1, maximum: 128 }),
    stream_options: object({
      optional: { include_usage: boolean, include_obfuscation: boolean },
    }),
    max_completion_tokens: tokenLimit,
    max_tokens: tokenLimit,
    stop: textOrList(text(), { of: "strings", maximumLength: 4, mayBeEmpty: true }),
    presence_penalty: penalty,
    frequency_penalty: penalty,
    logit_bias: map({ key: tokenIdKey, value: integer({ minimum: -100, maximum: 100 }) }),
    logprobs: boolean,
    seed: integer(),
    response_format: responseFormat,
    tools,
    tool_choice: toolChoice,
    functions,
    function_call: functionCall,
    reasoning_effort: effort,
    verbosity,
    modalities: list(oneOf(["text", "audio"]), { of: "strings", mayBeEmpty: true }),
    audio,
    prediction: tagged("type", { content: object({ required: { content: textContent } }) }),
    web_search_options: object({
      optional: {
        search_context_size: oneOf(["low", "medium", "high"]),
        user_location: userLocation,
      },
    }),
    moderation: object({ required: { model: text() } }),
    service_tier: oneOf(["auto", "default", "fast", "flex", "priority", "scale"]),
    // Older versions of OpenAI's own clients write the hyphen.
    prompt_cache_retention: oneOf(["in_memory", "24h", "in-memory"]),
    prompt_cache_options: object({
      optional: { mode: oneOf(["implicit", "explicit"]), ttl: oneOf(["30m"]) },
    }),
  },
});
