import type { AnswerEvent, FinishReason } from "../answer/answer-event.ts";
import { collectAnswer, type CollectedCall, type WholeAnswer } from "../answer/collect-answer.ts";
import type { JsonRecord } from "../read-json.ts";
import { logprobsOf } from "./logprobs.ts";
import type { ChatRequest } from "./read-chat-request.ts";
import { usageBody, type UsageCounts } from "./usage.ts";

/** The fields that all parts of one answer share. */
export interface AnswerIdentity {
  readonly id: string;
  /** Unix time in seconds. */
  readonly created: number;
  readonly model: string;
}

export type Choices = readonly Iterable<AnswerEvent>[];

/** The body of an answer that is not streamed. */
export function completionBody(
  identity: AnswerIdentity,
  request: ChatRequest,
  choices: Choices,
): { readonly body: JsonRecord; readonly usage: UsageCounts } {
  const collected = choices.map(collectAnswer);
  const usage: UsageCounts = {
    promptTokens: request.promptTokens,
    completionTokens: sum(collected.map((choice) => choice.finish.completionTokens)),
    reasoningTokens: sum(collected.map((choice) => choice.finish.reasoningTokens)),
  };
  const { id, created, model } = identity;
  const body = {
    id,
    object: "chat.completion",
    created,
    model,
    choices: collected.map((choice, index) => choiceBody(choice, index, request)),
    usage: usageBody(usage),
    service_tier: "default",
    system_fingerprint: "fp_simulator",
  };
  return { body, usage };
}

export function wireFinishReason(reason: FinishReason, isLegacyCall: boolean): string {
  if (reason === "tool-calls") return isLegacyCall ? "function_call" : "tool_calls";
  return reason;
}

function choiceBody(choice: WholeAnswer, index: number, request: ChatRequest): object {
  const { calls, refusal, reasoning, pieces } = choice;
  const { topLogprobs } = request;
  const isTextless = calls.length > 0 || refusal !== undefined;
  const [firstCall] = calls;
  const message = {
    role: "assistant",
    content: isTextless ? null : choice.text,
    ...(request.showsReasoning ? { reasoning_content: reasoning } : {}),
    refusal: refusal ?? null,
    annotations: [],
    ...(firstCall !== undefined && !request.isLegacyCall
      ? { tool_calls: calls.map(callBody) }
      : {}),
    ...(firstCall !== undefined && request.isLegacyCall
      ? { function_call: { name: firstCall.name, arguments: firstCall.input } }
      : {}),
  };
  return {
    index,
    message,
    logprobs:
      topLogprobs === undefined ? null : logprobsOf(pieces, topLogprobs, refusal !== undefined),
    finish_reason: wireFinishReason(choice.finish.reason, request.isLegacyCall),
  };
}

function callBody({ id, name, tool, input }: CollectedCall): object {
  return tool === "function"
    ? { id, type: "function", function: { name, arguments: input } }
    : { id, type: "custom", custom: { name, input } };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
