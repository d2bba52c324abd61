import { answerTooLarge, brokenAnswer } from "../../domain/errors/upstream-failure.ts";

/** Most tool calls in one choice: OpenAI takes back 128 in a message. */
export const mostToolCalls = 1_024;
/** Most choices in an answer: requests for more are refused. */
export const mostChoices = 128;

/** Throws `UpstreamFailure` when `count` is too large. */
export function checkToolCallCount(count: number): void {
  if (count <= mostToolCalls) return;
  throw answerTooLarge(`more than ${mostToolCalls} tool calls in a choice`);
}

/** Throws `UpstreamFailure` when `count` is too large: nobody asked for so many. */
export function checkChoiceCount(count: number): void {
  if (count > mostChoices) throw brokenAnswer(`the answer has more than ${mostChoices} choices`);
}
