import type { Conversation } from "../../../domain/chat/conversation.ts";
import { nonEmpty, objectOf } from "../../../domain/json-fields.ts";
import type { BedrockModel } from "../models/bedrock-model.ts";

/**
 * Fields of Claude's own answer that say which of several stop sequences ended it: the first in
 * whole answers (Bedrock API reference, `additionalModelResponseFieldPaths`), the second in streams
 * (as the AI SDK asks). A field that the answer lacks is ignored. Only Messages tells its callers.
 */
export const stopPaths = ["/stop_sequence", "/delta/stop_sequence"] as const;

export function asksForStop(
  { wire }: Conversation,
  { family }: BedrockModel,
  sent: readonly string[],
): boolean {
  return wire === "messages" && sent.length > 1 && family.startsWith("claude");
}

/** The stop sequence in `additionalModelResponseFields`. */
export function stopSequenceIn(modelFields: unknown): string | undefined {
  const fields = objectOf(modelFields);
  return (
    nonEmpty(fields?.["stop_sequence"]) ?? nonEmpty(objectOf(fields?.["delta"])?.["stop_sequence"])
  );
}
