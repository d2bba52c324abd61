/** What one family of the provider's models supports, and how it refuses the rest. */
export type CapabilityRow = Readonly<typeof capabilities> & FamilyRules;

interface FamilyRules {
  readonly api:
    | "chat"
    | "titan-embed-v1"
    | "titan-embed"
    | "titan-embed-image"
    | "nova-embed"
    | "cohere-embed-v3"
    | "cohere-embed-v4"
    | "everything";
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
  readonly lifecycle: "active" | "legacy" | "end-of-life";
}

/** Of a model that supports everything. */
const capabilities = {
  system: true,
  tools: true,
  /** `toolChoice` other than `auto`. */
  toolChoice: true,
  streamTools: true,
  /** Tool results and other blocks may share a turn. */
  toolResultsWithText: true,
  /** Ids of tool calls must be nine letters and digits. */
  hasShortToolIds: false,
  temperature: true,
  topP: true,
  topPWithTemperature: true,
  stop: true,
  /** The conversation may end with an assistant message. */
  prefill: true,
  images: true,
  toolResultImages: true,
  documents: true,
  jsonSchema: true,
  /** The types that Claude's field `thinking` may have. */
  thinkingTypes: ["enabled", "adaptive", "disabled"],
  thinksByDefault: false,
  /** Returns its thoughts only on request, as a summary. */
  omitsThoughts: false,
  /** What `output_config.effort` may be. */
  efforts: ["low", "medium", "high", "xhigh", "max"],
  cachePoints: true,
  /** Cache points are allowed among the tools. */
  toolCachePoints: true,
  /** Cache points may last an hour. */
  hourCachePoints: true,
  /** Shorter prefixes of prompts are not cached. */
  minCachedTokens: 1024,
  countTokens: true,
  /** Can be called only through a profile. */
  isProfileOnly: false,
  /** Has cross-region profiles: `us.` and the like before its id. */
  hasProfiles: true,
};

export const allCapableRow: CapabilityRow = {
  ...capabilities,
  api: "everything",
  modelFields: undefined,
  novaGeneration: undefined,
  maxOutputTokens: undefined,
  defaultMaxTokens: undefined,
  contextTokens: undefined,
  contextText: "plain",
  lifecycle: "active",
};

const claudeFields = "top_k thinking anthropic_beta tool_choice output_config metadata".split(" ");

const claude3: CapabilityRow = {
  ...allCapableRow,
  api: "chat",
  jsonSchema: false,
  cachePoints: false,
  hourCachePoints: false,
  modelFields: claudeFields.filter((name) => name !== "thinking" && name !== "output_config"),
  maxOutputTokens: 4096,
  contextTokens: 200_000,
  contextText: "claude",
};
const claude35: CapabilityRow = { ...claude3, maxOutputTokens: 8192, cachePoints: true };
const claude37: CapabilityRow = {
  ...claude35,
  thinkingTypes: ["enabled", "disabled"],
  efforts: ["low", "medium", "high"],
  modelFields: claudeFields,
  maxOutputTokens: 64_000,
  isProfileOnly: true,
};
const claude45: CapabilityRow = {
  ...claude37,
  topPWithTemperature: false,
  jsonSchema: true,
  hourCachePoints: true,
};
const claude46: CapabilityRow = {
  ...claude45,
  prefill: false,
  maxOutputTokens: 128_000,
  contextTokens: 1_000_000,
  hourCachePoints: false,
  thinkingTypes: ["enabled", "adaptive", "disabled"],
  efforts: ["low", "medium", "high", "max"],
};
const claude47: CapabilityRow = {
  ...claude46,
  temperature: false,
  topP: false,
  thinkingTypes: ["adaptive"],
  omitsThoughts: true,
  efforts: ["low", "medium", "high", "xhigh", "max"],
};
const claude5: CapabilityRow = {
  ...claude47,
  thinkingTypes: ["adaptive", "disabled"],
  thinksByDefault: true,
};
const haiku55: CapabilityRow = { ...claude5, toolChoice: false };
const sonnet55: CapabilityRow = { ...haiku55, thinkingTypes: ["adaptive", "between_tools"] };
const opus55: CapabilityRow = { ...haiku55, thinkingTypes: ["adaptive"] };

const plainChat: CapabilityRow = {
  ...allCapableRow,
  api: "chat",
  jsonSchema: false,
  cachePoints: false,
  countTokens: false,
  toolResultImages: false,
  modelFields: [],
};
const llama3: CapabilityRow = {
  ...plainChat,
  tools: false,
  toolChoice: false,
  stop: false,
  images: false,
  prefill: false,
  maxOutputTokens: 2048,
  contextTokens: 8192,
  hasProfiles: false,
};
const llama31: CapabilityRow = {
  ...llama3,
  tools: true,
  streamTools: false,
  toolResultsWithText: false,
  maxOutputTokens: 4096,
  contextTokens: 128_000,
  hasProfiles: true,
};
const llama4: CapabilityRow = {
  ...llama31,
  images: true,
  maxOutputTokens: 8192,
  isProfileOnly: true,
};
const mixtral: CapabilityRow = {
  ...plainChat,
  system: false,
  tools: false,
  toolChoice: false,
  images: false,
  modelFields: ["top_k"],
  maxOutputTokens: 4096,
  defaultMaxTokens: 512,
  contextTokens: 32_000,
  contextText: "mistral",
  hasProfiles: false,
};
const mistralLarge: CapabilityRow = {
  ...mixtral,
  system: true,
  tools: true,
  toolChoice: true,
  streamTools: false,
  toolResultsWithText: false,
  hasShortToolIds: true,
  maxOutputTokens: 8192,
  defaultMaxTokens: undefined,
};
const nova: CapabilityRow = {
  ...plainChat,
  cachePoints: true,
  toolCachePoints: false,
  hourCachePoints: false,
  toolResultImages: true,
  modelFields: ["inferenceConfig", "reasoningConfig"],
  novaGeneration: 1,
  maxOutputTokens: 10_000,
  contextTokens: 300_000,
  contextText: "nova",
};
const nova2: CapabilityRow = {
  ...nova,
  novaGeneration: 2,
  maxOutputTokens: 65_535,
  contextTokens: 1_000_000,
  isProfileOnly: true,
};
const titanText: CapabilityRow = {
  ...mixtral,
  documents: false,
  modelFields: [],
  maxOutputTokens: 8192,
  contextTokens: 8192,
  contextText: "plain",
};
const openWeights: CapabilityRow = { ...plainChat, modelFields: undefined, images: false };
const ended: Partial<CapabilityRow> = { lifecycle: "end-of-life", isProfileOnly: false };
const embedding: CapabilityRow = { ...plainChat, api: "titan-embed", hasProfiles: false };

/** The row of a foundation model is that of the first pattern that matches its id. */
export const capabilityRows: readonly (readonly [RegExp, CapabilityRow])[] = [
  [/^anthropic\.claude-(?:v2|instant)/, { ...claude3, ...ended }],
  [/^anthropic\.claude-3-(?:opus|sonnet|haiku)-/, claude3],
  [/^anthropic\.claude-3-5-sonnet-20240620-/, { ...claude35, maxOutputTokens: 4096 }],
  [/^anthropic\.claude-3-5-haiku-/, { ...claude35, images: false, minCachedTokens: 2048 }],
  [/^anthropic\.claude-3-5-/, claude35],
  [/^anthropic\.claude-3-7-/, claude37],
  [/^anthropic\.claude-opus-4-(?:1-)?\d{8}-/, { ...claude37, maxOutputTokens: 32_000 }],
  [/^anthropic\.claude-(?:opus-5-5(?!\d)|fable-|mythos-)/, opus55],
  [/^anthropic\.claude-sonnet-5-5(?!\d)/, sonnet55],
  [/^anthropic\.claude-haiku-5-5(?!\d)/, haiku55],
  [/^anthropic\.claude-(?:opus|sonnet|haiku)-5(?!\d)/, claude5],
  [/^anthropic\.claude-(?:opus|sonnet|haiku)-4-[7-9](?!\d)/, claude47],
  [/^anthropic\.claude-(?:opus|sonnet|haiku)-4-6(?!\d)/, claude46],
  [/^anthropic\.claude-(?:opus|haiku)-4-5(?!\d)/, { ...claude45, minCachedTokens: 4096 }],
  [/^anthropic\.claude-(?:opus|sonnet|haiku)-4-[1-5](?!\d)/, claude45],
  [/^anthropic\.claude-(?:opus|sonnet|haiku)-4(?!-\d(?!\d))/, claude37],
  [/^meta\.llama2-/, { ...llama3, ...ended }],
  [/^meta\.llama3-(?:8b|70b)-/, llama3],
  [/^meta\.llama3-2-(?:11b|90b)-/, { ...llama31, images: true, isProfileOnly: true }],
  [/^meta\.llama3-[1-3]-/, llama31],
  [/^meta\.llama4-/, llama4],
  [/^mistral\.(?:mixtral-8x7b|mistral-7b)-/, mixtral],
  [/^mistral\.mistral-large-/, mistralLarge],
  [/^amazon\.nova-micro-/, { ...nova, images: false, documents: false }],
  [/^amazon\.nova-2-multimodal-embeddings-/, { ...embedding, api: "nova-embed" }],
  [/^amazon\.nova-2-/, nova2],
  [/^amazon\.nova-/, nova],
  [/^amazon\.titan-text-/, titanText],
  [/^amazon\.titan-embed-(?:text-v1|g1-text-)/, { ...embedding, api: "titan-embed-v1" }],
  [/^amazon\.titan-embed-text-v2:/, embedding],
  [/^amazon\.titan-embed-image-v1/, { ...embedding, api: "titan-embed-image" }],
  [/^cohere\.embed-v4:/, { ...embedding, api: "cohere-embed-v4", hasProfiles: true }],
  [/^cohere\.embed-(?:english|multilingual)-v3/, { ...embedding, api: "cohere-embed-v3" }],
  [/^openai\.gpt-oss-/, { ...openWeights, jsonSchema: true }],
  [
    /^openai\.gpt-(?:5\.[6-9]|[6-9])/,
    { ...openWeights, temperature: false, topP: false, hasProfiles: true },
  ],
  [/^(?:cohere\.command-r|deepseek\.|qwen\.)/, openWeights],
];

/** Whether a foundation model has reached its end of life by this time, wall clock in ms. */
export function hasEnded(id: string, now: number): boolean {
  return ends.some(([pattern, end]) => pattern.test(id) && now >= Date.parse(end));
}

/** Announced ends of life, the latest of all regions; read in November 2026. */
const ends: readonly (readonly [RegExp, string])[] = [
  [/^anthropic\.claude-opus-4-20250514-/, "2026-05-31"],
  [/^anthropic\.claude-3-5-haiku-/, "2026-06-19"],
  [/^meta\.llama3-1-405b-/, "2026-07-07"],
  [/^meta\.llama3-2-/, "2026-07-07"],
  [/^anthropic\.claude-3-(?:sonnet|5-sonnet|7-sonnet)-/, "2026-07-30"],
  [/^cohere\.command-r-/, "2026-08-19"],
  [/^anthropic\.claude-3-haiku-/, "2026-09-10"],
  [/^amazon\.nova-premier-/, "2026-09-14"],
  [/^anthropic\.claude-sonnet-4-20250514-/, "2026-10-14"],
  [/^anthropic\.claude-opus-4-1-/, "2027-01-08"],
  [/^anthropic\.claude-sonnet-4-5-/, "2027-04-08"],
];
