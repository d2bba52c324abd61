import { recordOf, type JsonRecord } from "../../read-json.ts";
import type { ConverseRequest } from "../request/converse-request.ts";
import { markOfThoughts, reasoningSignature, redactedThoughts } from "./reasoning-signature.ts";

type Thinker = Pick<ConverseRequest, "model" | "thoughts">;

/** The block of an unstreamed answer; omitted thoughts are an empty text with a signature. */
export function reasoningContent(
  thoughts: string,
  { model, thoughts: shown }: Thinker,
): JsonRecord {
  if (shown === "redacted") return { redactedContent: redactedThoughts(model, thoughts) };
  const text = shown === "shown" ? thoughts : "";
  const signature = reasoningSignature({ model, text, mark: markOfThoughts(thoughts) });
  return { reasoningText: { signature, text } };
}

/** The delta for a piece of the thoughts; undefined if they are not shown. */
export function reasoningDelta(piece: string, { thoughts }: Thinker): JsonRecord | undefined {
  return thoughts === "shown" ? { text: piece } : undefined;
}

/** The delta at the end of the thoughts. */
export function reasoningEnd(thoughts: string, thinker: Thinker): JsonRecord {
  const { redactedContent, reasoningText } = reasoningContent(thoughts, thinker);
  if (redactedContent !== undefined) return { redactedContent };
  return { signature: recordOf(reasoningText)["signature"] };
}
