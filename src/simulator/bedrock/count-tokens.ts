import { countPromptTokens } from "../answer/prompt-tokens.ts";
import { countTokens } from "../answer/tokenizer.ts";
import { isList, isRecord, parseJson, recordOf, stringOf, type JsonRecord } from "../read-json.ts";
import { invalid } from "./bedrock-error.ts";
import type { CapabilityRow } from "./account/capability-row.ts";
import { checkConversation } from "./checks/check-conversation.ts";
import { countTokensShape } from "./request/converse-shapes.ts";
import { readPrompt } from "./request/read-prompt.ts";
import { checkShape } from "./request/shape.ts";

/** The count that CountTokens returns. Throws `BedrockError`. */
export function countInputTokens(body: JsonRecord, model: string, row: CapabilityRow): number {
  checkShape(body, countTokensShape);
  const { converse, invokeModel } = recordOf(body["input"]);
  if (isRecord(converse)) {
    checkConversation(converse, row);
    return countPromptTokens(readPrompt(converse, model, row));
  }
  const text = Buffer.from(stringOf(recordOf(invokeModel)["body"]), "base64").toString();
  try {
    return countTexts(parseJson(text));
  } catch {
    throw invalid("Malformed input request, please reformat your input and try again.");
  }
}

/** Each model has its own body, so all texts in it are counted. */
function countTexts(value: unknown): number {
  if (typeof value === "string") return countTokens(value);
  const inner = isList(value) ? value : Object.values(recordOf(value));
  return inner.reduce<number>((total, item) => total + countTexts(item), 0);
}
