import type { ChatResult } from "../../../domain/chat/chat.ts";
import type { WholeAnswer } from "../../adapter.ts";
import { collectAnswer } from "../../shared/collect-answer.ts";
import type { OnUnknownFinish } from "../../shared/finish-words.ts";
import type { AnswerContext } from "../encode/answer-context.ts";
import { converseEvents } from "./converse-events.ts";
import { ConverseStreamDecoder } from "./decode-converse-stream.ts";

/**
 * Reads the answer to a request for a whole one: Converse's JSON, or a stream in its place. Throws
 * `UpstreamFailure` for anything else.
 */
export function decodeConverse(
  { headers, body }: WholeAnswer,
  context: AnswerContext,
  onUnknownFinish: OnUnknownFinish = () => undefined,
): ChatResult {
  if (isFrame(body)) return decodeFrames(body, context, onUnknownFinish);
  const json = new TextDecoder().decode(body);
  return collectAnswer(converseEvents({ json, headers }, context, onUnknownFinish));
}

/** A frame begins with its length, which is below 2 ** 24; no JSON begins with a zero. */
function isFrame(body: Uint8Array): boolean {
  return body[0] === 0;
}

function decodeFrames(
  body: Uint8Array,
  context: AnswerContext,
  onUnknownFinish: OnUnknownFinish,
): ChatResult {
  const limits = { malformedEvents: 0, answerLimitBytes: body.length, answerValues: 0 };
  const decoder = new ConverseStreamDecoder({ context, onUnknownFinish }, limits);
  const events = [...decoder.push(body), ...decoder.end()];
  if (decoder.failure !== undefined) throw decoder.failure;
  return collectAnswer(events);
}
