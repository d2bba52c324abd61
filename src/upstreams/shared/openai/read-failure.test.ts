import { expect, test } from "bun:test";
import fc from "fast-check";
import { ManualClock } from "../../../../test/support/manual-clock.ts";
import { cleanMessage } from "../failure-reply.ts";
import { classifyError, createReadFailure } from "./read-failure.ts";

const clock = new ManualClock({ wallMs: Date.parse("2026-01-01T00:00:00Z") });

function failureOf(status: number, body: unknown, headers: Record<string, string> = {}) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const answer = { status, headers: new Headers(headers), body: new TextEncoder().encode(text) };
  return createReadFailure(clock)(answer);
}

const nested = (message: string, rest: object = {}) => ({ error: { message, ...rest } });

test.each([
  ["a throttle", 429, nested("Rate limit reached"), "throttled"],
  [
    "a throttle that mentions tokens",
    429,
    nested("Too many tokens, please wait before trying again."),
    "throttled",
  ],
  ["a throttle that mentions the context", 429, nested("maximum context length"), "throttled"],
  ["an overloaded 429", 429, nested("The engine is currently overloaded"), "overloaded"],
  [
    "OpenAI's overflow",
    400,
    nested("This model's maximum context length is 8192 tokens."),
    "context-overflow",
  ],
  [
    "an overflow by code",
    400,
    nested("no", { code: "context_length_exceeded" }),
    "context-overflow",
  ],
  [
    "llama.cpp's overflow",
    400,
    nested("the request exceeds the available context size", { type: "exceed_context_size_error" }),
    "context-overflow",
  ],
  ["a plain 400", 400, nested("temperature must be positive"), "invalid-request"],
  ["a 422", 422, { detail: "bad field" }, "invalid-request"],
  ["a 413", 413, "too large", "invalid-request"],
  [
    "an unsupported feature",
    501,
    nested("not supported", { type: "not_supported_error" }),
    "invalid-request",
  ],
  [
    "a content policy",
    400,
    nested("refused", { code: "content_policy_violation" }),
    "content-refused",
  ],
  [
    "Azure's content filter",
    400,
    nested("The response was filtered", { code: "content_filter" }),
    "content-refused",
  ],
  ["a refused credential", 401, { error: "Unauthorized" }, "bad-credential"],
  ["a forbidden model", 403, nested("no access"), "bad-credential"],
  ["an unknown model", 404, nested("model not found"), "unknown-model"],
  ["a server error", 500, nested("oops"), "unavailable"],
  ["a proxy's page", 502, "<html>bad gateway</html>", "unavailable"],
  ["a gateway timeout", 504, "", "timed-out"],
  ["an overload", 503, nested("loading model", { type: "unavailable_error" }), "overloaded"],
  ["an overload with a number of its own", 529, nested("overloaded_error"), "overloaded"],
  ["a redirect", 307, "", "unavailable"],
] as const)("%s is classified", (_, status, body, kind) => {
  expect(failureOf(status, body).kind).toBe(kind);
});

test("messages are found in all the forms that servers use", () => {
  expect(failureOf(400, { error: "flat text" }).message).toBe("flat text");
  expect(failureOf(400, { message: "flat object", object: "error" }).message).toBe("flat object");
  expect(failureOf(400, { detail: "fast api" }).message).toBe("fast api");
  expect(failureOf(400, [{ message: "a list" }]).message).toBe("a list");
  expect(failureOf(400, "<html></html>").message).not.toContain("html");
  expect(failureOf(400, nested("m", { param: "messages[0]" })).param).toBe("messages[0]");
});

test("the wait is read in milliseconds, seconds or as a date, and other values are ignored", () => {
  const waitOf = (headers: Record<string, string>): number | undefined =>
    failureOf(429, "", headers).retryAfterMs;
  expect(waitOf({ "retry-after-ms": "1500", "retry-after": "9" })).toBe(1_500);
  expect(waitOf({ "retry-after": "2" })).toBe(2_000);
  expect(waitOf({ "retry-after": "Thu, 01 Jan 2026 00:00:30 GMT" })).toBe(30_000);
  expect(waitOf({ "retry-after": "Wed, 31 Dec 2025 00:00:00 GMT" })).toBeUndefined();
  expect(waitOf({ "retry-after": "soon" })).toBeUndefined();
  expect(waitOf({})).toBeUndefined();
});

test("inside a stream, where there is no status, the code decides", () => {
  const kindOf = (message: string, code?: unknown): string =>
    classifyError(undefined, { message, code }).kind;
  expect(kindOf("anything", "rate_limit_exceeded")).toBe("throttled");
  expect(kindOf("anything", "overloaded_error")).toBe("overloaded");
  expect(kindOf("Too many requests, slow down")).toBe("throttled");
  expect(kindOf("something broke")).toBe("unavailable");
  // A message may quote the caller.
  expect(kindOf("your text: Rate limit reached, insufficient_quota, overloaded")).toBe(
    "unavailable",
  );
  expect(kindOf("anything", 429)).toBe("throttled");
  expect(kindOf("anything", 400)).toBe("invalid-request");
});

test("keys, accounts and links of the operator are removed from messages", () => {
  const message =
    "Incorrect key sk-proj-abcdefgh12345678 of org-Abcdefghijkl at https://provider.example/keys " +
    "for arn:aws:bedrock:us-east-1:123456789012:model/x with Bearer abcdef";
  const clean = cleanMessage(message);
  for (const secret of ["sk-proj", "org-A", "https://", "123456789012", "abcdef"]) {
    expect(clean).not.toContain(secret);
  }
  expect(cleanMessage("x".repeat(5_000)).length).toBeLessThan(1_100);
  expect(cleanMessage("temperature must be <= 2")).toBe("temperature must be <= 2");
});

test("any answer becomes a failure, and nothing is thrown", () => {
  const words = fc.oneof(fc.json(), fc.string(), fc.constantFrom("[{", '[{"error":', "{}", "[]"));
  const names = ["error", "errors", "message", "msg", "detail", "details", "code", "metadata"];
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { depthSize: "small" },
      words,
      fc.constantFrom(null, true, 429, "insufficient_quota"),
      fc.array(tie("tree"), { maxLength: 2 }),
      fc.dictionary(fc.constantFrom(...names, "raw", "retryDelay"), tie("tree")),
    ),
  }));
  const body = fc.oneof(tree, fc.string());
  fc.assert(
    fc.property(fc.integer({ min: 300, max: 599 }), body, (status, value) => {
      const details = failureOf(status, typeof value === "string" ? value : JSON.stringify(value));
      expect(details.status).toBe(status);
      expect(details.message).not.toBe("");
      // No message alone takes a target out of service for all.
      if (details.kind === "account-blocked") {
        expect(JSON.stringify(value)).toMatch(/"(?:code|type|status|reason)":/);
      }
    }),
    { numRuns: 2_000 },
  );
});
