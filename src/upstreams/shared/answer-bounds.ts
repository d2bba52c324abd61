import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";

/** Most tool calls in one choice: OpenAI takes back 128 in a message. */
export const mostToolCalls = 1_024;
/** Most choices in an answer: requests for more are refused. */
export const mostChoices = 128;

/** Throws `UpstreamFailure` when `count` is too large. */
export function checkToolCallCount(count: number): void {
  if (count > mostToolCalls) throw tooLarge(`more than ${mostToolCalls} tool calls in a choice`);
}

/** An answer that exceeds a limit of the gateway; `what` says which and how large it is. */
export function tooLarge(what: string): UpstreamFailure {
  return new UpstreamFailure({ kind: "answer-too-large", message: `it has ${what}` });
}

/** Throws `UpstreamFailure` when `count` is too large: nobody asked for so many. */
export function checkChoiceCount(count: number): void {
  if (count <= mostChoices) return;
  const message = `the upstream's answer has more than ${mostChoices} choices`;
  throw new UpstreamFailure({ kind: "broken-answer", message });
}
