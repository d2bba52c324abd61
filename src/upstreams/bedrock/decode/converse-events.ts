import { brokenAnswer } from "../../../domain/errors/upstream-failure.ts";
import type { ChatEvent } from "../../../domain/chat/chat.ts";
import { wellFormedJson } from "../../../domain/chat/well-formed.ts";
import type { AnswerHeaders } from "../../adapter.ts";
import { isObject, listOf, objectOf, textOf, type JsonObject } from "../../shared/json-fields.ts";
import type { OnUnknownFinish } from "../../shared/finish-words.ts";
import type { AnswerContext } from "../encode/answer-context.ts";
import { AnswerEvents } from "./answer-events.ts";
import { answerFailure } from "./broken-answer.ts";
import { parseExactly } from "./exact-json.ts";
import { failureInAnswer } from "../failures/read-failure.ts";
import { wholeThought } from "../thinking/streamed-thought.ts";
import { readUsage } from "./usage.ts";

/**
 * The events that a stream of a whole Converse answer would have had, each block in one piece.
 * Throws `UpstreamFailure` for JSON that is not a whole answer.
 */
export function converseEvents(
  { json, headers }: WholeText,
  context: AnswerContext,
  onUnknownFinish: OnUnknownFinish,
): readonly ChatEvent[] {
  try {
    const body = parseExactly(json);
    const message = objectOf(objectOf(body["output"])?.["message"]);
    const content = listOf(message?.["content"]);
    if (content === undefined) {
      throw failureInAnswer(body, headers) ?? brokenAnswer("the upstream's answer has no content");
    }
    const blocks = withoutAnswerBesideCalls(content, context.answerTool);
    return readAnswer(body, blocks, new AnswerEvents(context, onUnknownFinish));
  } catch (error) {
    throw answerFailure(error);
  }
}

/** A model that calls the caller's tools is not done, even if it also returns an answer. */
function withoutAnswerBesideCalls(
  content: readonly unknown[],
  answerTool: string | undefined,
): readonly unknown[] {
  const nameOf = (block: unknown): string | undefined =>
    textOf(objectOf(objectOf(block)?.["toolUse"])?.["name"]);
  const names = content.map(nameOf).filter((name) => name !== undefined);
  if (answerTool === undefined || names.every((name) => name === answerTool)) return content;
  return content.filter((block) => nameOf(block) !== answerTool);
}

/** A whole answer as text. */
export interface WholeText {
  readonly json: string;
  readonly headers?: AnswerHeaders;
}

function readAnswer(
  body: JsonObject,
  content: readonly unknown[],
  answer: AnswerEvents,
): readonly ChatEvent[] {
  answer.serviceTier(textOf(objectOf(body["serviceTier"])?.["type"]));
  for (const block of content) if (isObject(block)) readBlock(block, answer);
  const { stopReason, trace, usage, additionalModelResponseFields: modelFields } = body;
  answer.finish(textOf(stopReason), { trace, usage: readUsage(usage, modelFields) });
  return answer.take();
}

/** A block has one of these fields; kinds of content that chat does not have are left out. */
function readBlock(block: JsonObject, answer: AnswerEvents): void {
  const { text, toolUse, reasoningContent, citationsContent } = block;
  if (typeof text === "string") answer.text(text);
  else if (text !== undefined && text !== null) {
    throw brokenAnswer("a text of the answer is not text");
  }
  if (isObject(reasoningContent)) {
    answer.reasoning(textOf(objectOf(reasoningContent["reasoningText"])?.["text"]) ?? "");
    answer.reasoningBlock(wholeThought(reasoningContent));
  }
  // If sources are cited, the text is here.
  if (isObject(citationsContent)) readCitedText(citationsContent, answer);
  if (toolUse === undefined || toolUse === null) return;
  if (!isObject(toolUse)) throw brokenAnswer("a tool call of the answer is not an object");
  const input = answer.toolUse(toolUse);
  input.push(wellFormedJson(toolUse["input"] ?? {}));
  input.end();
}

function readCitedText(citations: JsonObject, answer: AnswerEvents): void {
  for (const piece of listOf(citations["content"]) ?? []) {
    answer.text(textOf(objectOf(piece)?.["text"]) ?? "");
  }
}
