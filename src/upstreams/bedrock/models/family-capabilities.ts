import { usualCapabilities as usual, type Capabilities } from "../config/capabilities.ts";
import type { ChatFamily } from "./model-families.ts";

const withoutTools = {
  tools: false,
  streamingTools: false,
  toolChoice: false,
  namedToolChoice: false,
} as const;

const claude: Capabilities = {
  ...usual,
  singleToolCalls: true,
  topK: true,
  prefill: true,
  images: true,
  toolResultImages: true,
  maxOutputTokens: 4_096,
};

const cachingClaude: Capabilities = { ...claude, promptCaching: true, countTokens: true };

const claude45: Capabilities = {
  ...cachingClaude,
  topPWithTemperature: false,
  promptCacheHour: true,
  jsonSchema: true,
  reasoning: "thinking-budget",
  maxOutputTokens: 64_000,
};

/** A conversation can no longer end with an assistant turn. */
const claude46: Capabilities = {
  ...claude45,
  prefill: false,
  promptCacheHour: false,
  reasoning: "adaptive",
  maxOutputTokens: 128_000,
};

/** From 4.7 on, sampling cannot be set, and this provider refuses JSON schemas. */
const claude47: Capabilities = {
  ...claude46,
  temperature: false,
  topP: false,
  topK: false,
  jsonSchema: false,
  xhighEffort: true,
  omitsThoughts: true,
};

/** It thinks by default. */
const claude5: Capabilities = {
  ...claude47,
  thinkingOff: "disabled",
  promptCacheMinTokens: 512,
};

/** From here on, no tool can be forced, even if the model does not think. */
const claude55 = { ...claude5, toolChoice: false, namedToolChoice: false };

/**
 * Llama calls tools in whole answers only, cannot be made to call one, refuses a turn with both
 * results and text, and takes no stop sequences.
 */
const llama: Capabilities = {
  ...usual,
  stop: false,
  streamingTools: false,
  toolChoice: false,
  namedToolChoice: false,
  toolResultsWithText: false,
  maxOutputTokens: 4_096,
};

const mistral: Capabilities = { ...usual, toolResultsWithText: false, nineCharacterToolIds: true };

const nova: Capabilities = {
  ...usual,
  prefill: true,
  images: true,
  toolResultImages: true,
  maxImageBytes: 25 * 1024 * 1024,
  promptCaching: true,
  promptCacheTools: false,
  promptCacheMinTokens: 1_000,
  topK: true,
  maxOutputTokens: 10_000,
};

/** What a prompt cannot express, whatever the operator sets for an imported model. */
export const promptOnly = {
  ...withoutTools,
  images: false,
  documents: false,
  promptCaching: false,
  jsonSchema: false,
  reasoning: "none",
} as const satisfies Partial<Capabilities>;

/** Only the operator knows the longest answer of an imported model. */
const imported: Capabilities = { ...usual, ...promptOnly, topK: true, prefill: true };

export const familyCapabilities: Readonly<Record<ChatFamily, Capabilities>> = {
  "claude-3": claude,
  "claude-3-5-sonnet-v1": claude,
  "claude-3-5": { ...claude, maxOutputTokens: 8_192, countTokens: true },
  // This provider's version accepts no images, unlike Anthropic's own.
  "claude-3-5-haiku": { ...cachingClaude, images: false, maxOutputTokens: 8_192 },
  "claude-3-7": { ...cachingClaude, reasoning: "thinking-budget", maxOutputTokens: 64_000 },
  "claude-4": { ...cachingClaude, reasoning: "thinking-budget", maxOutputTokens: 64_000 },
  "claude-opus-4": { ...cachingClaude, reasoning: "thinking-budget", maxOutputTokens: 32_000 },
  "claude-4-5": claude45,
  "claude-4-6": claude46,
  "claude-4-7": claude47,
  "claude-5": claude5,
  "claude-haiku-5-5": claude55,
  "claude-sonnet-5-5": { ...claude55, thinkingOff: "between-tools" },
  "claude-opus-5-5": { ...claude55, thinkingOff: "never" },
  "llama-3": { ...llama, ...withoutTools, maxOutputTokens: 2_048 },
  "llama-3-1": llama,
  "llama-3-1-405b": llama,
  "llama-3-2-vision": { ...llama, images: true },
  "llama-4": { ...llama, images: true, maxOutputTokens: 8_192 },
  "mistral-7b": { ...mistral, ...withoutTools, system: false, topK: true, maxOutputTokens: 8_192 },
  "mixtral-8x7b": {
    ...mistral,
    ...withoutTools,
    system: false,
    topK: true,
    // Without a cap it would write 512 tokens.
    maxOutputTokens: 4_096,
  },
  // It can be forced to call some tool, but not a specific one of several.
  "mistral-large": {
    ...mistral,
    streamingTools: false,
    namedToolChoice: false,
    maxOutputTokens: 8_192,
  },
  nova,
  "nova-micro": { ...nova, images: false, documents: false },
  "nova-2": { ...nova, reasoning: "nova-effort", maxOutputTokens: 65_535 },
  "titan-text": { ...usual, ...withoutTools, system: false, maxOutputTokens: 3_072 },
  "cohere-command-r": {
    ...usual,
    toolChoice: false,
    namedToolChoice: false,
    toolResultsWithText: false,
    maxOutputTokens: 4_000,
  },
  "deepseek-r1": { ...usual, ...withoutTools, maxOutputTokens: 32_768 },
  "gpt-oss": {
    ...usual,
    toolChoice: false,
    namedToolChoice: false,
    stop: false,
    jsonSchema: true,
    reasoning: "effort-field",
    maxOutputTokens: 16_384,
  },
  // Llama's native requests have no stop sequences.
  "imported-llama": { ...imported, stop: false },
  "imported-mistral": { ...imported, system: false },
  "imported-qwen": imported,
  // Nothing is known, so nothing is refused that the provider might accept.
  "other-chat": {
    ...usual,
    topK: true,
    prefill: true,
    images: true,
    toolResultImages: true,
    maxImageBytes: 25 * 1024 * 1024,
  },
};
