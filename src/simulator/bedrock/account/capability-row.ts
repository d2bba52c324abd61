/** What one family of the provider's models supports, and how it refuses the rest. */
export interface CapabilityRow {
  readonly api:
    | "chat"
    | "titan-embed-v1"
    | "titan-embed"
    | "titan-embed-image"
    | "nova-embed"
    | "cohere-embed-v3"
    | "cohere-embed-v4"
    | "imported-llama"
    | "imported-mistral"
    | "imported-qwen"
    | "everything";
  readonly system: boolean;
  readonly tools: boolean;
  /** `toolChoice` other than `auto`. */
  readonly toolChoice: boolean;
  readonly streamTools: boolean;
  /** Tool results and other blocks may share a turn. */
  readonly toolResultsWithText: boolean;
  /** Ids of tool calls must be nine letters and digits. */
  readonly hasShortToolIds: boolean;
  readonly temperature: boolean;
  readonly topP: boolean;
  readonly topPWithTemperature: boolean;
  readonly stop: boolean;
  /** The conversation may end with an assistant message. */
  readonly prefill: boolean;
  readonly images: boolean;
  readonly toolResultImages: boolean;
  readonly documents: boolean;
  readonly jsonSchema: boolean;
  /** The types that Claude's field `thinking` may have. */
  readonly thinkingTypes: readonly string[];
  readonly thinksByDefault: boolean;
  /** Returns its thoughts only on request, as a summary. */
  readonly omitsThoughts: boolean;
  /** What `output_config.effort` may be. */
  readonly efforts: readonly string[];
  readonly cachePoints: boolean;
  /** Cache points are allowed among the tools. */
  readonly toolCachePoints: boolean;
  /** Cache points may last an hour. */
  readonly hourCachePoints: boolean;
  /** Shorter prefixes of prompts are not cached. */
  readonly minCachedTokens: number;
  readonly countTokens: boolean;
  /** Names that `additionalModelRequestFields` may have; undefined allows any. */
  readonly modelFields: readonly string[] | undefined;
  /** Amazon's Nova has rules of its own. */
  readonly novaGeneration: 1 | 2 | undefined;
  readonly maxOutputTokens: number | undefined;
  /** The default for requests without a limit; undefined: `maxOutputTokens`. */
  readonly defaultMaxTokens: number | undefined;
  /** Undefined: no limit. */
  readonly contextTokens: number | undefined;
  /** The family whose error text is used for a prompt that is too long. */
  readonly contextText: "claude" | "nova" | "mistral" | "plain";
  /** Can be called only through a profile. */
  readonly isProfileOnly: boolean;
  /** Has cross-region profiles: `us.` and the like before its id. */
  readonly hasProfiles: boolean;
  readonly lifecycle: "active" | "legacy" | "end-of-life";
}

export const allCapableRow: CapabilityRow = {
  api: "everything",
  system: true,
  tools: true,
  toolChoice: true,
  streamTools: true,
  toolResultsWithText: true,
  hasShortToolIds: false,
  temperature: true,
  topP: true,
  topPWithTemperature: true,
  stop: true,
  prefill: true,
  images: true,
  toolResultImages: true,
  documents: true,
  jsonSchema: true,
  thinkingTypes: ["enabled", "adaptive", "disabled"],
  thinksByDefault: false,
  omitsThoughts: false,
  efforts: ["low", "medium", "high", "xhigh", "max"],
  cachePoints: true,
  toolCachePoints: true,
  hourCachePoints: true,
  minCachedTokens: 1024,
  countTokens: true,
  modelFields: undefined,
  novaGeneration: undefined,
  maxOutputTokens: undefined,
  defaultMaxTokens: undefined,
  contextTokens: undefined,
  contextText: "plain",
  isProfileOnly: false,
  hasProfiles: true,
  lifecycle: "active",
};
