import type { Conversation } from "../domain/chat/conversation.ts";
import { valueCosts } from "../domain/chat/json-scan.ts";
import { GatewayError } from "../domain/errors/gateway-error.ts";
import type { Model } from "../domain/model.ts";

/** The larger of the caller's two caps: a reservation for the smaller one could be exceeded. */
export function outputCap(request: Conversation): number | undefined {
  const { max_tokens: older, max_completion_tokens: newer } = request;
  if (typeof older !== "number") return newer ?? undefined;
  return typeof newer === "number" ? Math.max(older, newer) : older;
}

/** Refuses a cap above the model's maximum. Texts as in OpenAI's API. */
export function checkOutputCap(request: Conversation, model: Model): void {
  const { maxOutputTokens } = model;
  if (maxOutputTokens === undefined) return;
  for (const field of ["max_tokens", "max_completion_tokens"] as const) {
    const cap = request[field];
    if (typeof cap !== "number" || cap <= maxOutputTokens) continue;
    throw new GatewayError("invalid_value", {
      message:
        `${field} is too large: ${cap}. This model supports at most ${maxOutputTokens} ` +
        `completion tokens, whereas you provided ${cap}.`,
      param: field,
    });
  }
}

/**
 * Refuses a whole answer whose log probabilities could exceed `answers.chat_values`, before it is
 * generated and billed. Without a cap, only the answer shows its size.
 */
export function checkAnswerSize(request: Conversation, chatAnswerValues: number): void {
  const cap = outputCap(request);
  if (cap === undefined || request.logprobs !== true) return;
  const alternatives = request.top_logprobs ?? 0;
  const choices = request.n ?? 1;
  const most = Math.floor(chatAnswerValues / (tokenLogprobCost * (1 + alternatives)) / choices);
  if (cap <= most) return;
  const param = alternatives > 0 ? "top_logprobs" : "logprobs";
  throw new GatewayError("invalid_value", {
    message:
      `Log probabilities of ${choices} x ${cap} tokens with ${alternatives} alternatives each are ` +
      `too large for one answer, which has room for ${choices} x ${most} such tokens. Lower ` +
      "max_completion_tokens, top_logprobs or n, or set stream to true.",
    param,
  });
}

/** Values of `{"token","logprob","bytes":[...],"top_logprobs":[...]}`, weighted like a body's. */
const tokenLogprobCost = 4 * valueCosts.field;

/** Known length of an input. */
export interface KnownLength {
  readonly tokens: number;
  /** Whether an upstream counted it; otherwise it is a lower bound. */
  readonly isCounted: boolean;
}

/** Refuses only input that certainly does not fit. Text as in OpenAI's API. */
export function checkContextWindow({ tokens, isCounted }: KnownLength, model: Model): void {
  if (tokens <= model.contextWindow) return;
  const count = isCounted ? tokens : `at least ${tokens}`;
  throw new GatewayError("context_length_exceeded", {
    message:
      `This model's maximum context length is ${model.contextWindow} tokens. However, your ` +
      `messages resulted in ${count} tokens. Please reduce the length of the messages.`,
    param: model.kind === "chat" ? "messages" : "input",
  });
}
