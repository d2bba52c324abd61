import { expect, test } from "bun:test";
import { modelOf } from "../../test/support/pipeline-fixtures.ts";
import { UpstreamFailure } from "../domain/errors/upstream-failure.ts";
import type { UpstreamFailureKind } from "../domain/errors/failure-kind.ts";
import { failureError } from "./failure-error.ts";

/** Every kind: status and code for the caller. */
const table: Readonly<Record<UpstreamFailureKind, readonly [number, string | null]>> = {
  throttled: [503, "model_unavailable"],
  overloaded: [503, "model_unavailable"],
  unavailable: [503, "model_unavailable"],
  "connect-failed": [503, "model_unavailable"],
  "connection-lost": [503, "model_unavailable"],
  "timed-out": [503, "model_unavailable"],
  "broken-answer": [503, "model_unavailable"],
  "answer-too-large": [400, "answer_too_large"],
  "unfit-answer": [502, "answer_mismatch"],
  "bad-credential": [503, "model_unavailable"],
  "account-blocked": [503, "model_unavailable"],
  "stale-credential": [503, "model_unavailable"],
  unsupported: [400, "unsupported_parameter"],
  "unknown-model": [503, "model_unavailable"],
  "context-overflow": [400, "context_length_exceeded"],
  "invalid-request": [400, null],
  "content-refused": [400, "content_policy_violation"],
};

const kinds = Object.keys(table) as UpstreamFailureKind[];

test.each(kinds)("%s has its row in the table of errors", (kind) => {
  const [status, code] = table[kind];
  const error = failureError(new UpstreamFailure({ kind, message: "words" }), modelOf());
  expect([error.status, error.code]).toEqual([status, code]);
});

test("an unavailable model sends the upstream's Retry-After, up to a minute", () => {
  const waitOf = (retryAfterMs: number | undefined): string | undefined =>
    failureError(new UpstreamFailure({ kind: "throttled", message: "", retryAfterMs }), modelOf())
      .headers["retry-after-ms"];
  expect(waitOf(7_500)).toBe("7500");
  expect(waitOf(undefined)).toBe("2000");
  expect(waitOf(3_600_000)).toBe("60000");
});

test("faults of the operator are marked as not retryable", () => {
  for (const kind of ["bad-credential", "stale-credential", "unknown-model"] as const) {
    const failure = new UpstreamFailure({ kind, message: "", retryAfterMs: 7_500 });
    expect(failureError(failure, modelOf()).headers).toEqual({ "x-should-retry": "false" });
  }
});

test("an upstream's message reaches the caller only if the caller is at fault", () => {
  const messageOf = (kind: UpstreamFailureKind): string =>
    failureError(new UpstreamFailure({ kind, message: "account 12345" }), modelOf()).message;
  for (const kind of kinds) {
    expect(messageOf(kind).includes("account 12345")).toBe(
      // The gateway itself words what is wrong with an answer.
      table[kind][0] === 400 || kind === "unfit-answer",
    );
  }
});

test("an overflow begins with the sentence that clients search for, once", () => {
  const messageOf = (message: string): string =>
    failureError(new UpstreamFailure({ kind: "context-overflow", message }), modelOf()).message;
  expect(messageOf("prompt is too long: 7 > 5")).toBe(
    "This model's maximum context length is 1000 tokens. prompt is too long: 7 > 5",
  );
  const openAiDialect = "This model's maximum context length is 8192 tokens. However, ...";
  expect(messageOf(openAiDialect)).toBe(openAiDialect);
});

test("no message mentions a rate limit: clients would treat the error as a 429", () => {
  for (const kind of kinds) {
    const { message } = failureError(new UpstreamFailure({ kind, message: "" }), modelOf());
    expect(message).not.toMatch(/rate[\s_-]*limit/i);
    expect(message).not.toMatch(/too many tokens, please wait/i);
  }
});

test("an upstream failure has an explanation, a caller's mistake has none", () => {
  const explain = (kind: UpstreamFailureKind) =>
    failureError(new UpstreamFailure({ kind, message: "account 12345" }), modelOf()).explanation;
  expect(explain("throttled")).toEqual({
    rule: "upstream",
    summary:
      "No target of the model answered; the last failure: the provider is limiting requests.",
    model: "alpha-sonnet-4",
  });
  expect(JSON.stringify(explain("bad-credential"))).not.toContain("12345");
  expect(explain("context-overflow")).toBeUndefined();
});
