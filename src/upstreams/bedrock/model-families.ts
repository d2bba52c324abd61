/**
 * Families of the provider's models and what they can do. Identifiers say the family; an ARN does
 * not, so the operator names it there.
 */
export const chatFamilies = [
  "claude-3",
  "claude-3-7",
  "claude-4",
  "claude-4-5",
  "claude-4-7",
  "llama-3",
  "llama-3-1",
  "llama-4",
  "mistral-7b",
  "mixtral-8x7b",
  "mistral-large",
  "nova",
  "titan-text",
  "cohere-command-r",
  "deepseek-r1",
  "gpt-oss",
  "other-chat",
] as const;
export const embeddingFamilies = ["titan-embed-v2", "cohere-embed-v3", "cohere-embed-v4"] as const;

export type ChatFamily = (typeof chatFamilies)[number];
export type EmbeddingFamily = (typeof embeddingFamilies)[number];
export type ModelFamily = ChatFamily | EmbeddingFamily;

/** What a chat model takes. A request that needs more is refused, or loses the field if allowed. */
export interface Capabilities {
  /** Instructions of their own; without, they stand before the first words of the user. */
  readonly system: boolean;
  readonly tools: boolean;
  /** Tools in streamed answers; without, the whole answer is replayed as a stream. */
  readonly streamingTools: boolean;
  /** `required` and named tools can be asked for. */
  readonly toolChoice: boolean;
  /** Tool results and words of the user may share a turn. */
  readonly toolResultsWithText: boolean;
  /** `parallel_tool_calls: false` can be asked for. */
  readonly singleToolCalls: boolean;
  readonly temperature: boolean;
  readonly topP: boolean;
  /** Both together. */
  readonly topPWithTemperature: boolean;
  readonly stop: boolean;
  /** A conversation may end with words of the assistant, which the answer continues. */
  readonly prefill: boolean;
  readonly images: boolean;
  readonly documents: boolean;
  /** JSON schemas of answers are a request field. */
  readonly jsonSchema: boolean;
  /** How `reasoning_effort` is asked for. */
  readonly reasoning: "none" | "thinking-budget" | "adaptive" | "effort-field";
  /** Most tokens of one answer; undefined where the model's configuration alone says. */
  readonly maxOutputTokens: number | undefined;
  /** Ids of tool calls in the history must be nine letters and digits. */
  readonly nineCharacterToolIds: boolean;
  /** Tokens of a request can be counted without running it. */
  readonly countTokens: boolean;
}

/** The family that a foundation model's or system profile's identifier names. */
export function familyOf(_model: string): ModelFamily | undefined {
  return undefined;
}
