import type { ChatEvent, ChatResult } from "../../domain/chat/chat.ts";
import { collectAnswer } from "../shared/collect-answer.ts";
import { isJson } from "../shared/whole-body.ts";
import type { AnswerServices } from "./answer-services.ts";
import { AnswerReader } from "./stream/answer-reader.ts";
import { ChatStreamDecoder } from "./stream/decode-chat-stream.ts";

/**
 * Reads the answer to a request for a whole one: a `chat.completion`, or a stream in its place.
 * Throws `UpstreamFailure` for anything else.
 */
export function decodeChat(body: Uint8Array, services: AnswerServices): ChatResult {
  return collectAnswer(isJson(body) ? wholeEvents(body, services) : streamEvents(body, services));
}

function wholeEvents(body: Uint8Array, services: AnswerServices): readonly ChatEvent[] {
  const events: ChatEvent[] = [];
  new AnswerReader(services).readWhole(new TextDecoder().decode(body), events);
  return events;
}

function streamEvents(body: Uint8Array, services: AnswerServices): readonly ChatEvent[] {
  const limits = { malformedEvents: 0, answerLimitBytes: body.length, answerValues: 0 };
  const decoder = new ChatStreamDecoder(services, limits);
  const events = [...decoder.push(body), ...decoder.end()];
  if (decoder.failure !== undefined) throw decoder.failure;
  return events;
}
