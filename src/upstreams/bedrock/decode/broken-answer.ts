import { brokenAnswer, UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";

/**
 * Turns an error in reading an answer into a failure: invalid JSON, or JSON that is nested too
 * deep.
 */
export function answerFailure(error: unknown): UpstreamFailure {
  if (error instanceof UpstreamFailure) return error;
  return brokenAnswer("the upstream's answer is not the expected JSON", error);
}
