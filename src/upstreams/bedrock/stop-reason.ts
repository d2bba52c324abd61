import type { FinishReason } from "../../domain/chat.ts";
import { brokenAnswer } from "./broken-answer.ts";

/** How calls of an answer end it; undefined when it has none that the caller must answer. */
export type CallsFinish = "tool_calls" | "function_call" | undefined;

/**
 * OpenAI's reason for one of the service model's `stopReason`s. Agents end on `stop`, so an answer
 * with a call that must be answered never says it; nor does one without a call say the contrary.
 * Throws `UpstreamFailure` for the reasons that mean a failure: such an answer is no answer.
 */
export function readStopReason(stopReason: string, callsFinish: CallsFinish): FinishReason {
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
    // `end_turn`, `stop_sequence`, `tool_use`, and whatever may be added.
    default:
      return callsFinish ?? "stop";
  }
}
