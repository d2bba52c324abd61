import { brokenAnswer } from "../../../domain/errors/upstream-failure.ts";
import type { FinishReason } from "../../../domain/chat/chat.ts";
import {
  interruptedAnswer,
  readFinishWord,
  type OnUnknownFinish,
} from "../../shared/finish-words.ts";

/** How an answer's tool calls end it; undefined if it has none that the caller must answer. */
export type CallsFinish = "tool_calls" | "function_call" | undefined;

/** What an answer contains, apart from its text, when it ends. */
export interface EndedAnswer {
  readonly callsFinish: CallsFinish;
  readonly hasContent: boolean;
}

/**
 * OpenAI's reason for a `stopReason`. Agents stop at `stop`, so an answer with a call that must be
 * answered never has it, and one without a call never has `tool_calls`. Throws `UpstreamFailure`
 * for a missing reason, for reasons that mean a failure, and for an unknown one without content.
 */
export function readStopReason(
  stopReason: string | undefined,
  { callsFinish, hasContent }: EndedAnswer,
  onUnknown: OnUnknownFinish,
): FinishReason {
  if (stopReason === undefined || stopReason === "") {
    throw brokenAnswer("the upstream's answer does not say why it ended");
  }
  const meaning = readFinishWord(stopReason);
  switch (meaning) {
    case "length":
    case "content_filter":
      return meaning;
    case "stop":
    case "tool_calls":
    case "function_call":
      return callsFinish ?? "stop";
    case "interrupted":
      throw interruptedAnswer(stopReason);
    // A new reason must not make callers lose their answers.
    case "unknown":
      onUnknown(stopReason);
      if (!hasContent) throw brokenAnswer("the upstream's answer ended empty");
      return callsFinish ?? "stop";
  }
}

/** Whether the answer is not the model's own. */
export function isFiltered(stopReason: string | undefined): boolean {
  return stopReason !== undefined && readFinishWord(stopReason) === "content_filter";
}
