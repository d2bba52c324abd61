import type { AnswerEvent, FinishReason } from "../answer/answer-event.ts";
import { tokenLogprob, type TokenLogprob } from "./logprobs.ts";
import type { ChatRequest } from "./read-chat-request.ts";
import { usageBody, type UsageCounts } from "./usage.ts";

/** What all parts of one answer share. */
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
): { readonly body: object; readonly usage: UsageCounts } {
  const collected = choices.map((events) => collectChoice(events, request));
  const usage: UsageCounts = {
    promptTokens: request.promptTokens,
    completionTokens: sum(collected.map((choice) => choice.completionTokens)),
    reasoningTokens: sum(collected.map((choice) => choice.reasoningTokens)),
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

interface CollectedCall {
  readonly id: string;
  readonly name: string;
  readonly tool: "function" | "text";
  input: string;
}

interface CollectedChoice {
  reasoning: string;
  text: string;
  refusal: string | undefined;
  readonly calls: CollectedCall[];
  readonly logprobs: TokenLogprob[];
  reason: FinishReason;
  completionTokens: number;
  reasoningTokens: number;
}

function collectChoice(events: Iterable<AnswerEvent>, request: ChatRequest): CollectedChoice {
  const choice: CollectedChoice = {
    reasoning: "",
    text: "",
    refusal: undefined,
    calls: [],
    logprobs: [],
    reason: "stop",
    completionTokens: 0,
    reasoningTokens: 0,
  };
  for (const event of events) collectEvent(choice, event, request.topLogprobs);
  return choice;
}

function collectEvent(
  choice: CollectedChoice,
  event: AnswerEvent,
  topLogprobs: number | undefined,
): void {
  switch (event.kind) {
    case "reasoning":
      choice.reasoning += event.piece;
      break;
    case "text":
    case "refusal":
      if (event.kind === "text") choice.text += event.piece;
      else choice.refusal = (choice.refusal ?? "") + event.piece;
      if (topLogprobs !== undefined) choice.logprobs.push(tokenLogprob(event.piece, topLogprobs));
      break;
    case "call":
      choice.calls.push({ id: event.id, name: event.name, tool: event.tool, input: "" });
      break;
    case "input": {
      const call = choice.calls[event.index];
      if (call !== undefined) call.input += event.piece;
      break;
    }
    case "finish":
      choice.reason = event.reason;
      choice.completionTokens = event.completionTokens;
      choice.reasoningTokens = event.reasoningTokens;
      break;
  }
}

function choiceBody(choice: CollectedChoice, index: number, request: ChatRequest): object {
  const { calls, refusal, reasoning, logprobs } = choice;
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
  const isRefusal = refusal !== undefined;
  return {
    index,
    message,
    logprobs:
      request.topLogprobs === undefined
        ? null
        : { content: isRefusal ? null : logprobs, refusal: isRefusal ? logprobs : null },
    finish_reason: wireFinishReason(choice.reason, request.isLegacyCall),
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
