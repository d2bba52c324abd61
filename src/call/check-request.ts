import { choiceCount, type Conversation, fieldOf, outputCap } from "../domain/chat/conversation.ts";
import type { OutputExpectation } from "../admission/estimate/estimate.ts";
import { valueCosts } from "../domain/chat/json-scan.ts";
import { GatewayError } from "../domain/errors/gateway-error.ts";
import type { Model } from "../domain/model.ts";

/** Refuses a cap above the model's maximum. Texts as in OpenAI's API. */
export function checkOutputCap({ caps }: Conversation, { maxOutputTokens }: Model): void {
  if (maxOutputTokens === undefined) return;
  for (const { field, tokens, isDemanded } of caps) {
    if (tokens <= maxOutputTokens || isDemanded === true) continue;
    const message =
      `${field} is too large: ${tokens}. This model supports at most ${maxOutputTokens} ` +
      `completion tokens, whereas you provided ${tokens}.`;
    throw new GatewayError("invalid_value", { message, keptMessage: message, param: field });
  }
}

/** What admission reserves for; see `OutputCap.isDemanded`. */
export function expectedOutput(request: Conversation, model: Model): OutputExpectation {
  const { maxOutputTokens = Infinity } = model;
  const cap = outputCap(request);
  const choices = choiceCount(request);
  const capField = request.caps[0]?.field ?? fieldOf(request, "cap");
  const isDemanded = request.caps.every((each) => each.isDemanded === true);
  const said = { choices, capField };
  if (cap === undefined || !isDemanded || 2 * cap < maxOutputTokens) return { cap, ...said };
  return { cap: undefined, ...said, sentCap: Math.min(cap, maxOutputTokens) };
}

/**
 * Refuses a whole answer whose log probabilities could exceed `answers.chat_values`, before it is
 * generated and billed. Without a cap, only the answer shows its size.
 */
export function checkAnswerSize(request: Conversation, chatAnswerValues: number): void {
  const cap = outputCap(request);
  const { logprobs, topLogprobs: alternatives = 0 } = request.options;
  if (cap === undefined || logprobs !== true) return;
  const choices = choiceCount(request);
  const most = Math.floor(chatAnswerValues / (tokenLogprobCost * (1 + alternatives)) / choices);
  if (cap <= most) return;
  const param = fieldOf(request, alternatives > 0 ? "topLogprobs" : "logprobs");
  const lower = (["cap", "topLogprobs"] as const).map((option) => fieldOf(request, option));
  throw new GatewayError("invalid_value", {
    message:
      `Log probabilities of ${choices} x ${cap} tokens with ${alternatives} alternatives each are ` +
      `too large for one answer, which has room for ${choices} x ${most} such tokens. Lower ` +
      `${lower.join(", ")} or ${fieldOf(request, "n")}, or set stream to true.`,
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

/** Refuses only input that certainly does not fit, and names its field. Text as in OpenAI's API. */
export function checkContextWindow(
  { tokens, isCounted }: KnownLength,
  model: Model,
  param: string,
): void {
  if (tokens <= model.contextWindow) return;
  const count = isCounted ? tokens : `at least ${tokens}`;
  const message =
    `This model's maximum context length is ${model.contextWindow} tokens. However, your ` +
    `messages resulted in ${count} tokens. Please reduce the length of the messages.`;
  throw new GatewayError("context_length_exceeded", { message, keptMessage: message, param });
}
