import type { ChatFamily } from "../models/model-families.ts";

/** The source of a family's row in `family-capabilities.ts`. */
export interface FamilySource {
  readonly source: string;
  /** When it was read, `YYYY-MM-DD`. */
  readonly asOf: string;
  /**
   * `documented`: on the provider's page. `measured`: others report what the service itself
   * accepted and refused. `reported`: by pages or projects that do not name their source.
   */
  readonly basis: "documented" | "measured" | "reported";
  /** What the source has beyond the row, or where sources disagree. */
  readonly note?: string;
}

const userGuide = "https://docs.aws.amazon.com/bedrock/latest/userguide/";
const asOf = "2026-11-23";

/** From the model card of the family's best known model. */
function card(page: string, note?: string): FamilySource {
  const source = `${userGuide}model-card-${page}.html`;
  return { source, asOf, basis: "documented", ...(note !== undefined && { note }) };
}

function measured(source: string, note: string): FamilySource {
  return { source, asOf, basis: "measured", note };
}

function reported(source: string, note?: string): FamilySource {
  return { source, asOf, basis: "reported", ...(note !== undefined && { note }) };
}

const claudeOverview = "https://platform.claude.com/docs/en/models/";
const modelParameters = `${userGuide}model-parameters.html`;
const converseFeatures = `${userGuide}conversation-inference-supported-models-features.html`;

export const familySources: Readonly<Record<ChatFamily, FamilySource>> = {
  "claude-3": card("anthropic-claude-3-haiku"),
  "claude-3-5-sonnet-v1": reported(converseFeatures),
  "claude-3-5": reported(converseFeatures),
  "claude-3-5-haiku": card(
    "anthropic-claude-3-5-haiku",
    "text is its only input here, though Anthropic's own API takes images",
  ),
  "claude-3-7": reported(claudeOverview, "128K with a beta header"),
  "claude-4": reported(claudeOverview),
  "claude-opus-4": reported(claudeOverview),
  "claude-4-5": measured(claudeOverview, "64000 is accepted and more refused"),
  "claude-4-6": card("anthropic-claude-opus-4-6", "128K; also measured"),
  "claude-4-7": measured(claudeOverview, "128K"),
  "claude-5": reported(claudeOverview),
  "claude-haiku-5-5": card("anthropic-claude-haiku-5-5", "128K"),
  "claude-sonnet-5-5": reported(claudeOverview),
  "claude-opus-5-5": reported(claudeOverview),
  "llama-3": reported(modelParameters),
  "llama-3-1": card("meta-llama-3-1-70b-instruct", "4K; some report that 8192 is accepted"),
  "llama-3-1-405b": card("meta-llama-3-1-405b-instruct"),
  "llama-3-2-vision": reported(modelParameters, "some report a limit of 8192"),
  "llama-4": reported(modelParameters),
  "mistral-7b": reported(modelParameters),
  "mixtral-8x7b": card("mistral-ai-mixtral-8x7b-instruct", "4K"),
  "mistral-large": reported(modelParameters),
  nova: measured(
    "https://docs.aws.amazon.com/nova/latest/userguide/complete-request-schema.html",
    "the guide says 5K, the service accepts 10000 and refuses more",
  ),
  "nova-micro": reported(
    "https://docs.aws.amazon.com/nova/latest/userguide/complete-request-schema.html",
  ),
  "nova-2": measured(
    "https://docs.aws.amazon.com/nova/latest/nova2-userguide/extended-thinking.html",
    "65535 is accepted and more refused; only Nova 2 Lite is served by Converse",
  ),
  "titan-text": reported(modelParameters),
  "cohere-command-r": reported(modelParameters),
  "deepseek-r1": reported(modelParameters, "32768; the model card says 8K"),
  "gpt-oss": reported(
    modelParameters,
    "20B was measured to accept 128000, which is all of its context window",
  ),
  "imported-llama": reported(modelParameters, "an import may differ from the model it began as"),
  "imported-mistral": reported(modelParameters),
  "imported-qwen": reported(modelParameters),
  "other-chat": reported(converseFeatures, "nothing is known, so nothing is refused"),
};
