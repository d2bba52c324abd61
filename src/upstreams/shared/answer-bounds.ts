import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";

/** Most calls of tools in one choice: OpenAI takes back 128 in a message. */
export const mostToolCalls = 1_024;
/** Most choices in an answer: nobody can ask for more. */
export const mostChoices = 128;

/** Throws `UpstreamFailure` for the call that is one too many; `count` is with it. */
export function checkToolCallCount(count: number): void {
  if (count > mostToolCalls) throw tooMany(`${mostToolCalls} tool calls in a choice`);
}

/** Throws `UpstreamFailure` for the choice that is one too many; `count` is with it. */
export function checkChoiceCount(count: number): void {
  if (count > mostChoices) throw tooMany(`${mostChoices} choices`);
}

function tooMany(what: string): UpstreamFailure {
  const message = `the upstream's answer has more than ${what}`;
  return new UpstreamFailure({ kind: "broken-answer", message });
}
