import type { AnswerServices } from "../../src/upstreams/shared/openai/stream/tool-call-tracker.ts";
import type { ChatResult } from "../../src/domain/chat/answer.ts";
import type { DecoderLimits, WholeAnswer } from "../../src/upstreams/adapter.ts";
import { ConverseWire } from "../../src/upstreams/bedrock/decode/decode-converse.ts";
import { decodeAnswer, EventDecoder } from "../../src/upstreams/shared/answer-codec.ts";
import type { AnswerContext } from "../../src/upstreams/shared/answers/answer-context.ts";
import type { OnUnknownFinish } from "../../src/upstreams/shared/finish-words.ts";

/** Far above the answers of tests. */
export const decoderLimits: DecoderLimits = {
  malformedEvents: 0,
  answerLimitBytes: 64 * 1024 * 1024,
  answerValues: 1_000_000,
};

/** Ids are `prefix` and a number from 1. */
export function answerServices(prefix = "new_"): AnswerServices {
  let ids = 0;
  return {
    newToolCallId: () => `${prefix}${(ids += 1)}`,
    onUnknownFinish: () => undefined,
    signsByThoughts: false,
  };
}

/** A whole answer of Converse. */
export function decodeConverse(
  { headers, body }: WholeAnswer,
  context: AnswerContext,
  onUnknownFinish: OnUnknownFinish = () => undefined,
): ChatResult {
  return decodeAnswer(body, new ConverseWire(context, onUnknownFinish), headers);
}

/** Of a stream of Converse. */
export function converseDecoder(
  reader: { readonly context: AnswerContext; readonly onUnknownFinish: OnUnknownFinish },
  limits: DecoderLimits,
): EventDecoder<unknown> {
  return new EventDecoder(new ConverseWire(reader.context, reader.onUnknownFinish), limits);
}
