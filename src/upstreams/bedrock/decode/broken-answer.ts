import { UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";

/** The failure of an answer that began and is invalid; `message` is for the log. */
export function brokenAnswer(message: string, cause?: unknown): UpstreamFailure {
  return new UpstreamFailure({ kind: "broken-answer", message }, { cause });
}

/**
 * Turns an error in reading an answer into a failure: invalid JSON, or JSON that is nested too
 * deep.
 */
export function answerFailure(error: unknown): UpstreamFailure {
  if (error instanceof UpstreamFailure) return error;
  return brokenAnswer("the upstream's answer is not the expected JSON", error);
}
