import type { WireError } from "./errors.ts";

/**
 * Servers of the chat wire that are not OpenAI's: what each of them refuses, ignores and writes in another way. Where
 * each report is from stands in `docs/upstreams/openai.md`.
 */

/** The quirks that a gateway must be told of, by the names of Sluice's setting `quirks`. */
export const quirks = {
  ignores_stream: "a whole answer in place of a stream",
  streams_only: "requests without stream are refused",
  one_choice: "n is ignored",
  no_image_urls: "images with an address are refused",
  thoughts_as_reasoning: "thoughts are named reasoning",
  needs_thoughts: "tool calls without reasoning_content are refused",
  needs_signatures: "tool calls without the signature that they came with are refused",
} as const;

/** What other settings are for, or none: a gateway sees it. */
export const traits = {
  max_tokens_only: "max_completion_tokens is ignored",
  no_developer: "messages of the role developer are refused",
  no_token_ids: "token ids as inputs of embeddings are refused",
  ten_inputs: "more than ten inputs of embeddings are refused",
  calls_whole: "each tool call is one piece of a stream",
  indexes_repeat: "every tool call has the index 0",
  ids_empty: "tool calls have empty ids",
  stop_after_calls: "a stream of tool calls ends with stop",
  role_repeats: "every piece has the role",
  thoughts_in_tags: "thoughts are text between tags with Google's mark",
  usage_excludes_thoughts: "the output leaves out thoughts, the total has them",
  usage_lacks_details: "usage has no details",
  filter_results: "a stream begins with results of a filter, without a choice",
  keep_alives: "a stream begins with comments",
} as const;

export type Quirk = keyof typeof quirks | keyof typeof traits;

/** How a server behaves. */
export interface ServerBehaviour {
  readonly quirks: readonly Quirk[];
  /** Its text for a prompt that is too long. Undefined: OpenAI's. */
  readonly overflow?: string;
  readonly error?: (error: WireError) => unknown;
}

export const openAi: ServerBehaviour = { quirks: [] };

const googleWords: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
  503: "UNAVAILABLE",
};
const llamaTypes: Readonly<Record<number, string>> = {
  401: "authentication_error",
  404: "not_found_error",
  500: "server_error",
  503: "unavailable_error",
};

const withoutCode = ({ body }: WireError): unknown => ({ error: { ...body, code: null } });

export const profiles = {
  azure: {
    quirks: ["filter_results"],
    overflow: "Input tokens exceed the configured limit of 8192 tokens.",
    error: withoutCode,
  },
  gemini: {
    quirks: [
      "needs_signatures",
      "no_token_ids",
      "calls_whole",
      "indexes_repeat",
      "ids_empty",
      "stop_after_calls",
      "thoughts_in_tags",
      "usage_excludes_thoughts",
      "usage_lacks_details",
    ],
    overflow: "The input token count (8227) exceeds the maximum number of tokens allowed (8192).",
    error: ({ status, body: { message } }) => [
      { error: { code: status, message, status: googleWords[status] ?? "INTERNAL" } },
    ],
  },
  vllm: {
    quirks: ["max_tokens_only", "no_developer", "thoughts_as_reasoning", "usage_lacks_details"],
    error: ({ status, body: { message, param } }) => ({
      object: "error",
      message,
      type: "BadRequestError",
      param,
      code: status,
    }),
  },
  ollama: {
    quirks: [
      "max_tokens_only",
      "no_developer",
      "no_token_ids",
      "one_choice",
      "no_image_urls",
      "thoughts_as_reasoning",
      "calls_whole",
      "indexes_repeat",
      "role_repeats",
      "usage_lacks_details",
    ],
    overflow: "input length exceeds maximum context length",
    error: ({ body: { message } }) => ({
      error: { message, type: "api_error", param: null, code: null },
    }),
  },
  deepseek: {
    quirks: ["max_tokens_only", "no_developer", "one_choice", "needs_thoughts", "keep_alives"],
  },
  xai: {
    quirks: ["usage_excludes_thoughts", "calls_whole"],
    overflow: "This model's maximum prompt length is 8192 but the request contains 8227 tokens.",
    error: ({ body: { message } }) => ({
      code: "Client specified an invalid argument",
      error: message,
    }),
  },
  openrouter: {
    quirks: ["max_tokens_only", "thoughts_as_reasoning", "keep_alives", "role_repeats"],
    error: ({ status, body: { message } }) => ({ error: { message, code: status } }),
  },
  dashscope: {
    quirks: [
      "max_tokens_only",
      "no_developer",
      "no_token_ids",
      "ten_inputs",
      "streams_only",
      "one_choice",
      "usage_lacks_details",
    ],
    overflow:
      "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 8192]",
    error: withoutCode,
  },
  "llama-cpp": {
    quirks: ["max_tokens_only", "no_developer", "one_choice", "usage_lacks_details"],
    overflow: "the request exceeds the available context size",
    error: ({ status, body: { message, code } }) => {
      const isOverflow = code === "context_length_exceeded";
      const type = isOverflow ? "exceed_context_size_error" : llamaTypes[status];
      return { error: { code: status, message, type: type ?? "invalid_request_error" } };
    },
  },
} as const satisfies Readonly<Record<string, ServerBehaviour>>;

export type ProfileName = keyof typeof profiles;

export const isProfile = (name: string): name is ProfileName => Object.hasOwn(profiles, name);
export const isQuirk = (name: string): name is Quirk => name in quirks || name in traits;
