import type { FinishReason } from "../../../domain/chat/chat.ts";
import { cleanCode } from "../../shared/clean-message.ts";
import { brokenAnswer } from "./broken-answer.ts";

/** How an answer's tool calls end it; undefined if it has none that the caller must answer. */
export type CallsFinish = "tool_calls" | "function_call" | undefined;

/** Called with a stop reason that is not in the service's model yet, as the service wrote it. */
export type OnUnknownStopReason = (stopReason: string) => void;

/**
 * OpenAI's reason for one of the service model's `stopReason`s. Agents stop at `stop`, so an answer
 * with a call that must be answered never has it, and one without a call never has `tool_calls`.
 * Throws `UpstreamFailure` for a missing reason and for reasons that mean a failure.
 */
export function readStopReason(
  stopReason: string | undefined,
  callsFinish: CallsFinish,
  onUnknown: OnUnknownStopReason,
): FinishReason {
  switch (stopReason) {
    case "max_tokens":
    case "model_context_window_exceeded":
      return "length";
    case "guardrail_intervened":
    case "content_filtered":
      return "content_filter";
    case "malformed_model_output":
    case "malformed_tool_use":
      throw brokenAnswer(`the model gave up on its answer: ${stopReason}`);
    case "":
    case undefined:
      throw brokenAnswer("the upstream's answer does not say why it ended");
    case "end_turn":
    case "stop_sequence":
    case "tool_use":
      return callsFinish ?? "stop";
    // A new reason must not make callers lose their answers.
    default:
      onUnknown(stopReason);
      return callsFinish ?? "stop";
  }
}

/** Whether the answer is not the model's own. */
export function isFiltered(stopReason: string | undefined): boolean {
  return stopReason === "guardrail_intervened" || stopReason === "content_filtered";
}

/** An upstream that sends arbitrary reasons must not fill the log. */
const mostReports = 32;

/** Reports each unknown reason to the operator once. */
export function unknownStopReasonReport(onTrouble: (what: string) => void): OnUnknownStopReason {
  const reported = new Set<string>();
  return (stopReason) => {
    const name = cleanCode(stopReason) ?? "one that is no name";
    if (reported.has(name) || reported.size >= mostReports) return;
    reported.add(name);
    onTrouble(`an answer ended for an unknown reason and was treated as finished: ${name}`);
  };
}
