import { expect, test } from "bun:test";
import { isNoFinishWord, readFinishWord, type FinishMeaning } from "./finish-words.ts";

const table: Readonly<Record<FinishMeaning, readonly string[]>> = {
  stop: [
    "stop",
    "STOP",
    "end_turn",
    "eos",
    "eos_token",
    "COMPLETE",
    "stop_sequence",
    "FINISH_REASON_STOP",
    "endTurn",
    "pause_turn",
    "REASON_STOP",
  ],
  length: [
    "length",
    "max_tokens",
    "MAX_TOKENS",
    "max-tokens",
    "model_length",
    "max_output_tokens",
    "model_context_window_exceeded",
    "FINISH_REASON_MAX_TOKENS",
    "REASON_MAX_LEN",
  ],
  tool_calls: ["tool_calls", "tool_use", "TOOL_CALL", "toolUse", "tool-calls"],
  function_call: ["function_call", "function"],
  content_filter: [
    "content_filter",
    "content-filter",
    "Content Filter",
    "contentFilter",
    "content_filtered",
    "sensitive",
    "RECITATION",
    "SAFETY",
    "PROHIBITED_CONTENT",
    "BLOCKLIST",
    "SPII",
    "blocked",
    "refusal",
    "guardrail_intervened",
    "content_filter: RECITATION",
    "IMAGE_SAFETY",
    "moderation",
    "ERROR_TOXIC",
    "LANGUAGE",
    "content_policy_violation",
  ],
  interrupted: [
    "insufficient_system_resource",
    "network_error",
    "abort",
    "aborted",
    "error",
    "ERROR",
    "server_error",
    "server-error",
    "cancelled",
    "canceled",
    "USER_CANCEL",
    "timeout",
    "TIMED_OUT",
    "time_limit",
    "overloaded",
    "internal_server_error",
    "exception",
    "failed",
    "MALFORMED_FUNCTION_CALL",
    "function_call_filter: MALFORMED_FUNCTION_CALL",
    "malformed_model_output",
    "malformed_tool_use",
    "preempted",
    "load",
    "rate_limited",
    "UNEXPECTED_TOOL_CALL",
    "service_unavailable",
    "resource_exhausted",
    "incomplete",
  ],
  unknown: ["banana", "OTHER", "repetition", "TOO_MANY_TOOL_CALLS"],
};

test.each(Object.entries(table))("words that mean %s", (meaning, words) => {
  expect(words.map((word) => [word, readFinishWord(word)])).toEqual(
    words.map((word) => [word, meaning]),
  );
});

test("words that mean nothing yet", () => {
  for (const word of ["", " ", "null", "NULL", "None", "not_finished"]) {
    expect(isNoFinishWord(word)).toBe(true);
  }
  for (const word of ["stop", "nullify"]) expect(isNoFinishWord(word)).toBe(false);
});
