import { countOf, objectOf } from "../../shared/json-fields.ts";
import type { Capabilities } from "../config/capabilities.ts";

/**
 * Fields requested from Claude's own answer, because Converse's `TokenUsage` counts thoughts only
 * as output. According to the SDK's documents, a field that the answer lacks is ignored. That this
 * field has the count is reported (LiteLLM reads it).
 */
export const thoughtCountPaths = ["/usage/output_tokens_details"] as const;

/** Whether the model reports such counts, and thinks. */
export function countsThoughts({ reasoning }: Capabilities, isThinking: boolean): boolean {
  return isThinking && (reasoning === "thinking-budget" || reasoning === "adaptive");
}

/**
 * Tokens of thoughts in `additionalModelResponseFields`, which are part of the output; 0 if absent.
 */
export function thoughtTokensIn(modelFields: unknown): number {
  const usage = objectOf(objectOf(modelFields)?.["usage"]);
  return countOf(objectOf(usage?.["output_tokens_details"])?.["thinking_tokens"]) ?? 0;
}
