import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";

/** Most tool calls in one choice: OpenAI takes back 128 in a message. */
export const mostToolCalls = 1_024;
/** Most choices in an answer: requests for more are refused. */
export const mostChoices = 128;

/** Throws `UpstreamFailure` when `count` is too large. */
export function checkToolCallCount(count: number): void {
  if (count > mostToolCalls) throw tooMany(`${mostToolCalls} tool calls in a choice`);
}

/** Throws `UpstreamFailure` when `count` is too large. */
export function checkChoiceCount(count: number): void {
  if (count > mostChoices) throw tooMany(`${mostChoices} choices`);
}

function tooMany(what: string): UpstreamFailure {
  const message = `the upstream's answer has more than ${what}`;
  return new UpstreamFailure({ kind: "broken-answer", message });
}
