/** What one family of the provider's models takes, and how it refuses the rest. */
export interface CapabilityRow {
  readonly api: "chat" | "titan-embed" | "cohere-embed-v3" | "cohere-embed-v4" | "everything";
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
  /** The conversation may end with the assistant's words. */
  readonly prefill: boolean;
  readonly images: boolean;
  readonly toolResultImages: boolean;
  readonly documents: boolean;
  readonly jsonSchema: boolean;
  readonly cachePoints: boolean;
  readonly countTokens: boolean;
  /** Names that `additionalModelRequestFields` may have; undefined allows any. */
  readonly modelFields: readonly string[] | undefined;
  readonly maxOutputTokens: number | undefined;
  /** Where a request names no limit; undefined: `maxOutputTokens`. */
  readonly defaultMaxTokens: number | undefined;
  /** Undefined: no limit. */
  readonly contextTokens: number | undefined;
  readonly contextText: "claude" | "plain";
  /** Quota tokens for one token of output. */
  readonly burndown: number;
  /** Cannot be called by its own id. */
  readonly isProfileOnly: boolean;
  /** Has profiles across regions: `us.` and the like before its id. */
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
  cachePoints: true,
  countTokens: true,
  modelFields: undefined,
  maxOutputTokens: undefined,
  defaultMaxTokens: undefined,
  contextTokens: undefined,
  contextText: "plain",
  burndown: 1,
  isProfileOnly: false,
  hasProfiles: true,
  lifecycle: "active",
};

const claudeFields = [
  "top_k",
  "thinking",
  "anthropic_beta",
  "tool_choice",
  "output_config",
  "metadata",
];

const claude3: CapabilityRow = {
  ...allCapableRow,
  api: "chat",
  jsonSchema: false,
  cachePoints: false,
  modelFields: claudeFields.filter((name) => name !== "thinking" && name !== "output_config"),
  maxOutputTokens: 4096,
  contextTokens: 200_000,
  contextText: "claude",
};
const claude35: CapabilityRow = { ...claude3, maxOutputTokens: 8192, cachePoints: true };
const claude37: CapabilityRow = {
  ...claude35,
  modelFields: claudeFields,
  maxOutputTokens: 64_000,
  isProfileOnly: true,
};
const claude4: CapabilityRow = { ...claude37, burndown: 5 };
const claude45: CapabilityRow = { ...claude4, topPWithTemperature: false, jsonSchema: true };
const claude46: CapabilityRow = { ...claude45, prefill: false };
const claude47: CapabilityRow = { ...claude46, temperature: false, topP: false };

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
  toolResultImages: true,
  modelFields: ["inferenceConfig", "reasoningConfig"],
  maxOutputTokens: 10_000,
  contextTokens: 300_000,
};
const titanText: CapabilityRow = {
  ...mixtral,
  documents: false,
  modelFields: [],
  maxOutputTokens: 8192,
  contextTokens: 8192,
};
const ended: Partial<CapabilityRow> = { lifecycle: "end-of-life", isProfileOnly: false };
const embedding: CapabilityRow = { ...plainChat, api: "titan-embed", hasProfiles: false };

/** The first pattern that fits a foundation model's id says what it can do. */
export const capabilityRows: readonly (readonly [RegExp, CapabilityRow])[] = [
  [/^anthropic\.claude-(?:v2|instant)/, { ...claude3, ...ended }],
  [/^anthropic\.claude-3-(?:opus|sonnet|haiku)-/, claude3],
  [/^anthropic\.claude-3-5-sonnet-20240620-/, { ...claude35, maxOutputTokens: 4096 }],
  [/^anthropic\.claude-3-5-/, claude35],
  [/^anthropic\.claude-3-7-/, claude37],
  [/^anthropic\.claude-opus-4-(?:1-)?\d{8}-/, { ...claude4, maxOutputTokens: 32_000 }],
  [/^anthropic\.claude-(?:opus|sonnet|haiku)-(?:4-[7-9]|[5-9])(?!\d)/, claude47],
  [/^anthropic\.claude-(?:opus|sonnet|haiku)-4-6(?!\d)/, claude46],
  [/^anthropic\.claude-(?:opus|sonnet|haiku)-4-[1-5](?!\d)/, claude45],
  [/^anthropic\.claude-(?:opus|sonnet|haiku)-4(?!-\d(?!\d))/, claude4],
  [/^meta\.llama2-/, { ...llama3, ...ended }],
  [/^meta\.llama3-(?:8b|70b)-/, llama3],
  [/^meta\.llama3-[1-3]-/, llama31],
  [/^meta\.llama4-/, llama4],
  [/^mistral\.(?:mixtral-8x7b|mistral-7b)-/, mixtral],
  [/^mistral\.mistral-large-/, mistralLarge],
  [/^amazon\.nova-micro-/, { ...nova, images: false, documents: false }],
  [/^amazon\.nova-/, nova],
  [/^amazon\.titan-text-/, titanText],
  [/^amazon\.titan-embed-text-v2:/, embedding],
  [/^cohere\.embed-v4:/, { ...embedding, api: "cohere-embed-v4", hasProfiles: true }],
  [/^cohere\.embed-(?:english|multilingual)-v3/, { ...embedding, api: "cohere-embed-v3" }],
  [
    /^(?:cohere\.command-r|deepseek\.|openai\.gpt-oss-|qwen\.)/,
    {
      ...plainChat,
      modelFields: undefined,
      images: false,
    },
  ],
];
