import {
  llamaPrompt,
  mistralPrompt,
  type PromptTemplate,
  qwenPrompt,
} from "../invoke/prompt-template.ts";

/**
 * Families of the provider's models. Capabilities can differ between them. Identifiers contain the
 * family; an ARN does not, so the operator must name it.
 */
export const chatFamilies = [
  "claude-3",
  "claude-3-5-sonnet-v1",
  "claude-3-5",
  "claude-3-5-haiku",
  "claude-3-7",
  "claude-4",
  "claude-opus-4",
  "claude-4-5",
  "claude-4-6",
  "claude-4-7",
  "claude-5",
  "claude-haiku-5-5",
  "claude-sonnet-5-5",
  "claude-opus-5-5",
  "llama-3",
  "llama-3-1",
  "llama-3-1-405b",
  "llama-3-2-vision",
  "llama-4",
  "mistral-7b",
  "mixtral-8x7b",
  "mistral-large",
  "nova",
  "nova-micro",
  "nova-2",
  "titan-text",
  "cohere-command-r",
  "deepseek-r1",
  "gpt-oss",
  "imported-llama",
  "imported-mistral",
  "imported-qwen",
  "other-chat",
] as const;
export const embeddingFamilies = [
  "titan-embed-v1",
  "titan-embed-v2",
  "titan-embed-image",
  "nova-embed",
  "cohere-embed-v3",
  "cohere-embed-v4",
] as const;

export type ChatFamily = (typeof chatFamilies)[number];
/** Imported models that are called through InvokeModel, with prompts in their own template. */
export type ImportedFamily = Extract<ChatFamily, `imported-${string}`>;
export type EmbeddingFamily = (typeof embeddingFamilies)[number];
export type ModelFamily = ChatFamily | EmbeddingFamily;

/**
 * The family that a foundation model's or system profile's identifier names. Undefined for ARNs,
 * which do not contain it, and for unknown models.
 */
export function familyOf(identifier: string): ModelFamily | undefined {
  const foundation = foundationModelOf(identifier);
  if (foundation === undefined) return undefined;
  return patterns.find(([pattern]) => pattern.test(foundation))?.[1];
}

/** The foundation model behind a system profile, or the identifier itself; an ARN hides it. */
export function foundationModelOf(identifier: string): string | undefined {
  return identifier.startsWith("arn:") ? undefined : identifier.replace(geography, "");
}

/** The prefix of system profiles' identifiers before the foundation model's. */
const geography = /^(?:us-gov|us|eu|apac|jp|au|ca|in|global)\./;

/** The first match counts. */
const patterns: readonly (readonly [RegExp, ModelFamily])[] = [
  [/^anthropic\.claude-3-7-/, "claude-3-7"],
  [/^anthropic\.claude-3-5-sonnet-20240620-/, "claude-3-5-sonnet-v1"],
  [/^anthropic\.claude-3-5-haiku-/, "claude-3-5-haiku"],
  [/^anthropic\.claude-3-5-/, "claude-3-5"],
  [/^anthropic\.claude-3-/, "claude-3"],
  [/^anthropic\.claude-(?:opus|sonnet|haiku)-4-(?:[7-9]|\d\d)(?!\d)/, "claude-4-7"],
  [/^anthropic\.claude-(?:opus|sonnet|haiku)-4-6(?!\d)/, "claude-4-6"],
  [/^anthropic\.claude-(?:opus|sonnet|haiku)-4-5(?!\d)/, "claude-4-5"],
  // `claude-opus-4-1-20250805` and `claude-sonnet-4-20250514`.
  [/^anthropic\.claude-opus-4-/, "claude-opus-4"],
  [/^anthropic\.claude-(?:sonnet|haiku)-4-/, "claude-4"],
  [/^anthropic\.claude-haiku-5-5(?!\d)/, "claude-haiku-5-5"],
  [/^anthropic\.claude-sonnet-5-5(?!\d)/, "claude-sonnet-5-5"],
  // These always think. Newer models are treated like these.
  [/^anthropic\.claude-(?:opus-5-5(?!\d)|fable-|mythos-)/, "claude-opus-5-5"],
  [/^anthropic\.claude-(?:opus|sonnet|haiku)-5(?!\d|-[1-9](?!\d))/, "claude-5"],
  [/^anthropic\.claude-(?:opus|sonnet|haiku)-(?:[5-9]|\d\d)(?!\d)/, "claude-opus-5-5"],
  [/^meta\.llama3-1-405b-/, "llama-3-1-405b"],
  [/^meta\.llama3-2-(?:11b|90b)-/, "llama-3-2-vision"],
  // The small ones have no tools, like the first third generation.
  [/^meta\.llama3-2-/, "llama-3"],
  [/^meta\.llama3-[13]-/, "llama-3-1"],
  [/^meta\.llama3-/, "llama-3"],
  [/^meta\.llama4-/, "llama-4"],
  [/^mistral\.mistral-7b-/, "mistral-7b"],
  [/^mistral\.mixtral-8x7b-/, "mixtral-8x7b"],
  [/^mistral\.mistral-large-24/, "mistral-large"],
  [/^amazon\.nova-micro-/, "nova-micro"],
  [/^amazon\.nova-2-lite-/, "nova-2"],
  [/^amazon\.nova-(?:lite|pro|premier)-/, "nova"],
  [/^amazon\.titan-text-/, "titan-text"],
  [/^amazon\.titan-embed-(?:text-v1|g1-text-)/, "titan-embed-v1"],
  [/^amazon\.titan-embed-text-v2/, "titan-embed-v2"],
  [/^amazon\.titan-embed-image-v1/, "titan-embed-image"],
  [/^amazon\.nova-2-multimodal-embeddings-/, "nova-embed"],
  [/^cohere\.command-r-/, "cohere-command-r"],
  [/^cohere\.embed-(?:english|multilingual)-v3/, "cohere-embed-v3"],
  [/^cohere\.embed-v4/, "cohere-embed-v4"],
  [/^deepseek\.r1-/, "deepseek-r1"],
  [/^openai\.gpt-oss-/, "gpt-oss"],
];

/** How one family of imported models is called through InvokeModel. */
export interface ImportedWire {
  readonly prompt: PromptTemplate;
  /** The field of the cap; its name also determines the form of the answer. */
  readonly capField: "max_gen_len" | "max_tokens";
}

const importedWires: Readonly<Record<ImportedFamily, ImportedWire>> = {
  "imported-llama": { prompt: llamaPrompt, capField: "max_gen_len" },
  "imported-mistral": { prompt: mistralPrompt, capField: "max_tokens" },
  "imported-qwen": { prompt: qwenPrompt, capField: "max_gen_len" },
};

/** Undefined for families that Converse, or an embedding's InvokeModel, serves. */
export function importedWireOf(family: ModelFamily): ImportedWire | undefined {
  const wires: Readonly<Partial<Record<ModelFamily, ImportedWire>>> = importedWires;
  return wires[family];
}
