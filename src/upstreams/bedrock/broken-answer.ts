import { UpstreamFailure } from "../../domain/upstream-failure.ts";
import type { TokenUsage } from "../../domain/usage.ts";

/** The failure of an answer that began and makes no sense; `message` is for the log. */
export function brokenAnswer(message: string, cause?: unknown): UpstreamFailure {
  return new UpstreamFailure({ kind: "broken-answer", message }, { cause });
}

/** The failure of a whole answer without the form that was asked for; `problem` quotes none of it. */
export function unfitAnswer(problem: string, usage: TokenUsage | undefined): UpstreamFailure {
  return new UpstreamFailure({ kind: "unfit-answer", message: problem, usage });
}

/** Whatever reading an answer threw, as a failure: JSON that is none, or nests without end. */
export function answerFailure(error: unknown): UpstreamFailure {
  if (error instanceof UpstreamFailure) return error;
  return brokenAnswer("the upstream's answer is not the JSON it should be", error);
}
