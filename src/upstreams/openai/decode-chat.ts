import type { ChatResult } from "../../domain/chat/chat.ts";
import { collectAnswer } from "../shared/collect-answer.ts";
import type { AnswerServices } from "./answer-services.ts";
import { ChatStreamDecoder } from "./stream/decode-chat-stream.ts";

/**
 * Reads the answer to a request for a whole one: a `chat.completion`, or a stream in its place.
 * Throws `UpstreamFailure` for anything else.
 */
export function decodeChat(body: Uint8Array, services: AnswerServices): ChatResult {
  // The body was checked when it was received.
  const limits = { malformedEvents: 0, answerLimitBytes: body.length, answerValues: Infinity };
  const decoder = new ChatStreamDecoder(services, limits);
  const events = decoder.readReceived(body);
  if (decoder.failure !== undefined) throw decoder.failure;
  return collectAnswer(events);
}
