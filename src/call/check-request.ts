import type { ChatRequest } from "../domain/chat/chat.ts";
import { GatewayError } from "../domain/errors/gateway-error.ts";
import type { Model } from "../domain/model.ts";

/** The larger of the caller's two caps: reserving the smaller one would let the other run over. */
export function outputCap(request: ChatRequest): number | undefined {
  const { max_tokens: older, max_completion_tokens: newer } = request;
  if (typeof older !== "number") return newer ?? undefined;
  return typeof newer === "number" ? Math.max(older, newer) : older;
}

/** Refuses a cap that the model cannot honour. Texts as OpenAI's API. */
export function checkOutputCap(request: ChatRequest, model: Model): void {
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

/** What is known of the number of tokens that a model will read. */
export interface KnownLength {
  readonly tokens: number;
  /** Whether an upstream counted; else the input has these at least. */
  readonly isCounted: boolean;
}

/** Refuses only what certainly does not fit; the upstream counts exactly. Text as OpenAI's API. */
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
