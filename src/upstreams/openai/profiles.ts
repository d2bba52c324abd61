import { keysOf } from "../../domain/json-fields.ts";
import type { Quirk } from "../../wires/chat/quirks.ts";

/** What a profile may set: keys of an upstream in the file, as an operator could write them. */
export interface Profile {
  readonly base_url?: string;
  readonly api_key_header?: "authorization" | "api-key";
  readonly max_tokens_field?: "max_tokens" | "max_completion_tokens" | "as_sent";
  readonly instruction_role?: "system" | "developer" | "as_sent";
  readonly session_cache_key?: boolean;
  readonly takes_token_ids?: boolean;
  readonly embedding_batch_limit?: number;
  readonly forward_fields?: readonly string[];
  readonly drop_fields?: readonly string[];
  readonly quirks?: readonly Quirk[];
}

/** What holds where neither the file nor its profile says anything. */
export const usual = {
  api_key_header: "authorization",
  max_tokens_field: "as_sent",
  instruction_role: "as_sent",
  takes_token_ids: true,
  embedding_batch_limit: 2048,
} as const satisfies Profile;

/**
 * Servers by their names. Each value has its source in `docs/upstreams/openai.md`, and most were
 * somebody's bug report. A server that ignores `max_completion_tokens` writes without a cap, beyond
 * what a plan has reserved.
 */
export const profiles = {
  azure: { api_key_header: "api-key", session_cache_key: true },
  gemini: {
    base_url: "https://generativelanguage.googleapis.com/v1beta/openai",
    takes_token_ids: false,
    embedding_batch_limit: 100,
    drop_fields: [
      "store",
      "metadata",
      "frequency_penalty",
      "prompt_cache_key",
      "prompt_cache_retention",
      "prompt_cache_options",
      "safety_identifier",
    ],
    quirks: ["needs_signatures"],
  },
  vllm: {
    base_url: "http://127.0.0.1:8000/v1",
    max_tokens_field: "max_tokens",
    instruction_role: "system",
    quirks: ["thoughts_as_reasoning"],
  },
  ollama: {
    base_url: "http://127.0.0.1:11434/v1",
    max_tokens_field: "max_tokens",
    instruction_role: "system",
    takes_token_ids: false,
    quirks: ["one_choice", "no_image_urls", "thoughts_as_reasoning"],
  },
  deepseek: {
    base_url: "https://api.deepseek.com/v1",
    max_tokens_field: "max_tokens",
    instruction_role: "system",
    quirks: ["one_choice", "needs_thoughts"],
  },
  xai: { base_url: "https://api.x.ai/v1" },
  openrouter: {
    base_url: "https://openrouter.ai/api/v1",
    max_tokens_field: "max_tokens",
    forward_fields: ["reasoning_details"],
    quirks: ["thoughts_as_reasoning"],
  },
  dashscope: {
    base_url: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    max_tokens_field: "max_tokens",
    instruction_role: "system",
    takes_token_ids: false,
    embedding_batch_limit: 10,
    quirks: ["streams_only", "one_choice"],
  },
  "llama-cpp": {
    base_url: "http://127.0.0.1:8080/v1",
    max_tokens_field: "max_tokens",
    instruction_role: "system",
    quirks: ["one_choice"],
  },
} as const satisfies Readonly<Record<string, Profile>>;

export const profileNames = keysOf(profiles);
