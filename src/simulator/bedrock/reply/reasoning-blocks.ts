import { recordOf, type JsonRecord } from "../../read-json.ts";
import type { ConverseRequest } from "../request/converse-request.ts";
import { markOfThoughts, reasoningSignature, redactedThoughts } from "./reasoning-signature.ts";

type Thinker = Pick<ConverseRequest, "model" | "thoughts">;

/** The block of a whole answer: the text is empty where it is left out, and signed all the same. */
export function reasoningContent(
  thoughts: string,
  { model, thoughts: shown }: Thinker,
): JsonRecord {
  if (shown === "redacted") return { redactedContent: redactedThoughts(model, thoughts) };
  const text = shown === "shown" ? thoughts : "";
  const signature = reasoningSignature({ model, text, mark: markOfThoughts(thoughts) });
  return { reasoningText: { signature, text } };
}

/** What a stream says of the thoughts while they come; undefined where they are not shown. */
export function reasoningDelta(piece: string, { thoughts }: Thinker): JsonRecord | undefined {
  return thoughts === "shown" ? { text: piece } : undefined;
}

/** What a stream says of the thoughts once they are whole. */
export function reasoningEnd(thoughts: string, thinker: Thinker): JsonRecord {
  const { redactedContent, reasoningText } = reasoningContent(thoughts, thinker);
  if (redactedContent !== undefined) return { redactedContent };
  return { signature: recordOf(reasoningText)["signature"] };
}
