import { UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";

/** The failure of an answer that began and makes no sense; `message` is for the log. */
export function brokenAnswer(message: string, cause?: unknown): UpstreamFailure {
  return new UpstreamFailure({ kind: "broken-answer", message }, { cause });
}

/** Whatever reading an answer threw, as a failure: JSON that is none, or nests without end. */
export function answerFailure(error: unknown): UpstreamFailure {
  if (error instanceof UpstreamFailure) return error;
  return brokenAnswer("the upstream's answer is not the JSON it should be", error);
}
