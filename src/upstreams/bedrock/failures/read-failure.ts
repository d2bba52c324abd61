import type { Clock } from "../../../domain/clock.ts";
import {
  UpstreamFailure,
  type UpstreamFailureDetails,
} from "../../../domain/errors/upstream-failure.ts";
import type { AnswerHeaders, FailedAnswer } from "../../adapter.ts";
import { nonEmpty, objectOf, parseObject, type JsonObject } from "../../shared/json-fields.ts";
import { readRetryAfter } from "../../shared/retry-after.ts";
import { failureOfException } from "./exceptions.ts";

export const requestIdHeader = "x-amzn-requestid";

/** Classifies a non-2xx answer of the service, or of a front end before it. */
export function createReadFailure(clock: Clock): (answer: FailedAnswer) => UpstreamFailureDetails {
  return ({ status, headers, body }) => {
    const error = parseError(body);
    const details = failureOfException({ name: readName(headers, error), body: error, status });
    const retryAfterMs = readRetryAfter(headers, clock.now()) ?? details.retryAfterMs;
    return { ...details, retryAfterMs };
  };
}

/** The failure in a 2xx answer without the expected field; undefined when it has none. */
export function failureInAnswer(
  body: JsonObject,
  headers?: AnswerHeaders,
): UpstreamFailure | undefined {
  const name = readName(headers, body);
  const hasWords = nonEmpty(body["message"]) ?? nonEmpty(body["Message"]);
  if (name === undefined && hasWords === undefined) return undefined;
  return new UpstreamFailure(failureOfException({ name, body }));
}

/** A body that is not a JSON object (a proxy's page, an empty one) has no useful message. */
function parseError(body: Uint8Array): JsonObject {
  return parseObject(body) ?? {};
}

/** `ValidationException:http://...` in the header, else `com.amazon.coral#ValidationException`. */
function readName(headers: AnswerHeaders | undefined, error: JsonObject): string | undefined {
  const unrouted = objectOf(error["Output"]);
  const name =
    nonEmpty(headers?.get("x-amzn-errortype")) ??
    nonEmpty(error["__type"]) ??
    nonEmpty(error["code"]) ??
    nonEmpty(unrouted?.["__type"]);
  return nonEmpty(name?.split(":")[0]?.split("#").at(-1)?.trim());
}
