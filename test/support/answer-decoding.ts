import type { AnswerServices } from "../../src/upstreams/shared/openai/stream/tool-call-tracker.ts";
import type { DecoderLimits } from "../../src/upstreams/adapter.ts";

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
