import fc from "fast-check";
import { expect, test } from "bun:test";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import type { UpstreamFailureDetails } from "../../domain/errors/upstream-failure.ts";
import type { UpstreamFailureKind } from "../../domain/errors/failure-kind.ts";
import { createReadFailure, failureOfException } from "./read-failure.ts";

interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

const readFailure = createReadFailure(new ManualClock());

function failureOf({ status, headers, body = "" }: Answer): UpstreamFailureDetails {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return readFailure({
    status,
    headers: new Headers(headers),
    body: new TextEncoder().encode(text),
  });
}

/** The service's answer, with the name in a header and the text in the body. */
function exceptionOf(name: string, status: number, message?: string): Answer {
  const errorType = `${name}:http://internal.amazon.com/coral/com.amazon.bedrock/`;
  return { status, headers: { "x-amzn-ErrorType": errorType }, body: { message } };
}

type Row = readonly [name: string, status: number, message: string, kind: UpstreamFailureKind];

/** Every exception of the service model, and those that all services of the provider share. */
const rows: readonly Row[] = [
  ["ValidationException", 400, "Input is too long for requested model.", "context-overflow"],
  [
    "ValidationException",
    400,
    "The model returned the following errors: prompt is too long: 200001 tokens > 200000 maximum",
    "context-overflow",
  ],
  [
    "ValidationException",
    400,
    "input length and `max_tokens` exceed context limit: 199000 + 4096 > 200000",
    "context-overflow",
  ],
  ["ValidationException", 400, "too many total text bytes: 9 > 8", "context-overflow"],
  [
    "ValidationException",
    400,
    "This model's maximum context length is 131072 tokens. Please reduce the length of the prompt",
    "context-overflow",
  ],
  [
    "ValidationException",
    400,
    "400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 9875",
    "context-overflow",
  ],
  [
    "ValidationException",
    400,
    "Malformed input request: expected maxLength: 50000, actual: 160000, please reformat your input.",
    "context-overflow",
  ],
  [
    "ValidationException",
    400,
    "prompt tokens (140000) exceed model maximum (128000)",
    "context-overflow",
  ],
  ["ValidationException", 400, "Input is too long.", "context-overflow"],
  [
    "ValidationException",
    400,
    "The model returned the following errors: prompt is too long: 208,310 tokens > 200,000 maximum",
    "context-overflow",
  ],
  [
    "ValidationException",
    400,
    "The model returned the following errors: Input Tokens Exceeded: Number of input tokens " +
      "exceeds maximum length. Please update the input to try again.",
    "context-overflow",
  ],
  [
    "ValidationException",
    400,
    "Prompt contains 40,961 tokens and 0 draft tokens, too large for model with 32,768 maximum " +
      "context length",
    "context-overflow",
  ],
  [
    "ModelErrorException",
    424,
    "The model returned the following errors: Prompt contains 40961 tokens, too large for model " +
      "with 32768 maximum context length",
    "context-overflow",
  ],
  ["ValidationException", 400, "The provided model identifier is invalid.", "unknown-model"],
  [
    "ValidationException",
    400,
    "The provided model doesn't support on-demand throughput.",
    "unknown-model",
  ],
  // About the operator's account, not the request.
  ["ValidationException", 400, "Operation not allowed", "bad-credential"],
  [
    "ValidationException",
    400,
    "Your account is not authorized to invoke this API operation.",
    "bad-credential",
  ],
  [
    "ValidationException",
    400,
    "Access to this model is not available for channel program accounts. Reach out to your AWS " +
      "Solution Provider or AWS Distributor for more information.",
    "bad-credential",
  ],
  [
    "ValidationException",
    400,
    "Access to Anthropic models is not allowed from unsupported countries, regions, or territories.",
    "bad-credential",
  ],
  [
    "ValidationException",
    400,
    "data retention mode 'default' is not available for this model",
    "bad-credential",
  ],
  [
    "ValidationException",
    400,
    "Model use case details have not been submitted for this account.",
    "bad-credential",
  ],
  [
    "AccessDeniedException",
    403,
    "Model access is denied due to INVALID_PAYMENT_INSTRUMENT:A valid payment instrument must be " +
      "provided.",
    "account-blocked",
  ],
  // Quoted words of a caller do not concern the operator.
  [
    "ValidationException",
    400,
    "Malformed input request: #: extraneous key [your account is not authorized] is not permitted",
    "invalid-request",
  ],
  ...[
    "The provided model identifier is invalid.",
    "Invocation of model ID x with on-demand throughput isn't supported.",
    "Value 'x' at 'modelId' failed to satisfy constraint",
    "The guardrail identifier or version provided in the request does not exist.",
    "Model access is denied due to INVALID_PAYMENT_INSTRUMENT",
    "This model version has reached the end of its life.",
  ].map((words): Row => [
    "ValidationException",
    400,
    `1 validation error detected: Value '${words}' at 'messages.1.content' is not allowed`,
    "invalid-request",
  ]),
  [
    "ValidationException",
    400,
    "Invocation of model ID anthropic.claude-x with on-demand throughput isn’t supported. Retry " +
      "your request with the ID or ARN of an inference profile that contains this model.",
    "unknown-model",
  ],
  [
    "ValidationException",
    400,
    "Invocation of model ID x with on-demand throughput isn't supported.",
    "unknown-model",
  ],
  [
    "ValidationException",
    400,
    "1 validation error detected: Value 'x y' at 'modelId' failed to satisfy constraint: Member " +
      "must satisfy regular expression pattern",
    "unknown-model",
  ],
  [
    "ValidationException",
    400,
    "This model version has reached the end of its life.",
    "unknown-model",
  ],
  // The operator's guardrail, which callers cannot see.
  [
    "ValidationException",
    400,
    "The guardrail identifier or version provided in the request does not exist.",
    "unknown-model",
  ],
  [
    "ValidationException",
    400,
    "1 validation error detected: Value 'a b' at 'guardrailConfig.guardrailIdentifier' failed to " +
      "satisfy constraint: Member must satisfy regular expression pattern",
    "unknown-model",
  ],
  ["ValidationException", 400, "The provided guardrailVersion is invalid.", "unknown-model"],
  ["ResourceNotFoundException", 404, "The guardrail does not exist.", "unknown-model"],
  ["ValidationException", 400, "Malformed input request: #: extraneous key [x]", "invalid-request"],
  ["ValidationException", 400, "Could not process image", "invalid-request"],
  ["ValidationException", 400, "Output blocked by content filtering policy", "content-refused"],
  [
    "ValidationException",
    400,
    "This request has been blocked by our content filters.",
    "content-refused",
  ],
  [
    "ValidationException",
    400,
    "Too many tokens, please wait before trying again.",
    "invalid-request",
  ],
  ["ResourceNotFoundException", 404, "The model has reached the end of its life.", "unknown-model"],
  [
    "ResourceNotFoundException",
    404,
    "Access denied. This Model is marked by provider as Legacy and you have not been actively " +
      "using the model in the last 30 days",
    "unknown-model",
  ],
  ["FTUFormNotFilled", 404, "Model use case details have not been submitted.", "unknown-model"],
  ["AccessDeniedException", 403, "You don't have access to the model.", "bad-credential"],
  ["MissingAuthenticationTokenException", 403, "Missing Authentication Token", "bad-credential"],
  ["UnrecognizedClientException", 403, "The security token is invalid.", "stale-credential"],
  ["InvalidSignatureException", 403, "Signature expired: 1 is now earlier", "stale-credential"],
  ["SignatureDoesNotMatch", 403, "The signature does not match.", "stale-credential"],
  ["ExpiredTokenException", 403, "The security token is expired", "stale-credential"],
  ["ExpiredToken", 400, "The provided token has expired.", "stale-credential"],
  ["RequestExpired", 400, "Request has expired.", "stale-credential"],
  ["RequestTimeTooSkewed", 403, "The difference is too large.", "stale-credential"],
  ["IncompleteSignatureException", 400, "The signature is not complete.", "stale-credential"],
  ["ThrottlingException", 429, "Too many requests, please wait.", "throttled"],
  ["ThrottlingException", 429, "Too many tokens, please wait before trying again.", "throttled"],
  ["ThrottlingException", 429, "Too many tokens per day, please wait.", "throttled"],
  ["ThrottlingException", 400, "Input is too long for requested model.", "throttled"],
  ["TooManyRequestsException", 429, "Slow down.", "throttled"],
  ["ServiceQuotaExceededException", 400, "The quota is exceeded.", "throttled"],
  ["ModelNotReadyException", 429, "The model is not ready for inference.", "overloaded"],
  ["ModelTimeoutException", 408, "The model took too long.", "timed-out"],
  ["ModelErrorException", 424, "The model failed.", "unavailable"],
  ["InternalServerException", 500, "The server had a problem.", "unavailable"],
  ["InternalFailure", 500, "The server had a problem.", "unavailable"],
  ["ServiceUnavailableException", 503, "Bedrock is unable to process it.", "overloaded"],
  ["ConflictException", 400, "There is a conflict.", "unavailable"],
  ["UnknownOperationException", 404, "", "unavailable"],
  ["SerializationException", 400, "Start of structure or map found", "unavailable"],
  ["BrandNewException", 400, "Input is too long for requested model.", "invalid-request"],
  ["BrandNewException", 418, "New.", "unavailable"],
];

for (const [name, status, message, kind] of rows) {
  test(`${name} ${status} "${message}" is ${kind}, wherever its name is`, () => {
    const body = { message };
    const answers: readonly Answer[] = [
      exceptionOf(name, status, message),
      { status, headers: { "x-amzn-errortype": name }, body },
      { status, body: { __type: `com.amazon.coral.validate#${name}`, ...body } },
      { status, body: { __type: name, Message: message } },
      { status, body: { code: name, ...body } },
    ];
    for (const answer of answers) expect(failureOf(answer)).toMatchObject({ kind, status });
  });
}

test("the header's name wins over the body's", () => {
  const answer = exceptionOf("ThrottlingException", 429, "x");
  const body = { __type: "ValidationException", message: "x" };
  expect(failureOf({ ...answer, body }).kind).toBe("throttled");
});

test("an operation unknown to the front end is named in its own form", () => {
  const body = {
    Output: { __type: "com.amazon.coral.service#UnknownOperationException" },
    Version: "1.0",
  };
  expect(failureOf({ status: 404, body }).kind).toBe("unavailable");
});

test("a model's own throttle behind a model error is a throttle", () => {
  const { headers } = exceptionOf("ModelErrorException", 424);
  const kindOf = (originalStatusCode: unknown): string =>
    failureOf({
      status: 424,
      ...(headers && { headers }),
      body: { message: "x", originalStatusCode, resourceName: "arn:aws:bedrock:x" },
    }).kind;
  expect(kindOf(429)).toBe("throttled");
  expect(kindOf(500)).toBe("unavailable");
  expect(kindOf(undefined)).toBe("unavailable");
});

test("without a name the status decides", () => {
  const kinds: readonly (readonly [number, UpstreamFailureKind])[] = [
    [301, "unavailable"],
    [400, "invalid-request"],
    [401, "bad-credential"],
    [403, "bad-credential"],
    [404, "unknown-model"],
    [405, "unavailable"],
    [408, "timed-out"],
    [413, "invalid-request"],
    [424, "unavailable"],
    [429, "throttled"],
    [500, "unavailable"],
    [502, "unavailable"],
    [503, "overloaded"],
    [504, "timed-out"],
  ];
  const bodies = ["", "<html><body><h1>502 Bad Gateway</h1></body></html>", "[]", "null", "{}"];
  for (const [status, kind] of kinds) {
    for (const body of [...bodies, { message: "Something." }, { message: 7 }]) {
      expect({ status, body, ...failureOf({ status, body }) }).toMatchObject({
        status,
        body,
        kind,
      });
    }
  }
});

test("without a name the text distinguishes errors of one status", () => {
  const kindOf = (status: number, message: string): string =>
    failureOf({ status, body: { message } }).kind;
  expect(kindOf(403, "The security token included in the request is expired")).toBe(
    "stale-credential",
  );
  expect(kindOf(400, "Input is too long for requested model.")).toBe("context-overflow");
  expect(kindOf(429, "Too many tokens, please wait: input is too long for requested model")).toBe(
    "throttled",
  );
});

test("the preamble of the model's message and details of the operator are removed", () => {
  const message =
    "The model returned the following errors: messages.0: no access to " +
    "arn:aws:bedrock:us-east-1:123456789012:provisioned-model/abc for 123456789012";
  expect(failureOf(exceptionOf("ValidationException", 400, message)).message).toBe(
    "messages.0: no access to [removed] for [removed]",
  );
});

test("a page of a proxy is not repeated", () => {
  const { message } = failureOf({ status: 502, body: "<html>secret-host</html>" });
  expect(message).toBe("the model's upstream answered status 502 and gave no reason");
});

test("an exception without words is named", () => {
  const { message } = failureOf({
    status: 429,
    headers: { "x-amzn-errortype": "ThrottlingException" },
  });
  expect(message).toBe("the model's upstream answered ThrottlingException and gave no reason");
});

test("the wait of the answer is used, and one second for a model that is not ready", () => {
  const notReady = exceptionOf("ModelNotReadyException", 429, "Not ready.");
  expect(failureOf(notReady).retryAfterMs).toBe(1_000);
  const headers = { ...notReady.headers, "retry-after": "7" };
  expect(failureOf({ ...notReady, headers }).retryAfterMs).toBe(7_000);
  expect(failureOf(exceptionOf("ThrottlingException", 429, "x")).retryAfterMs).toBeUndefined();
});

test("any answer becomes a failure, and nothing is thrown", () => {
  const name = fc.option(fc.stringMatching(/^[\x21-\x7e]{0,40}$/));
  const body = fc.oneof(fc.json(), fc.string(), fc.dictionary(fc.string(), fc.jsonValue()));
  fc.assert(
    fc.property(fc.integer({ min: 300, max: 599 }), name, body, (status, errorType, value) => {
      const headers = errorType === null ? {} : { "x-amzn-errortype": errorType };
      const details = failureOf({ status, headers, body: value });
      expect(details.status).toBe(status);
      expect(details.message).not.toBe("");
    }),
  );
});

const hintOf = (name: string, message: string): string | undefined =>
  failureOfException({ name, body: { message }, status: 400 }).hint;

test.each([
  [
    "ValidationException",
    "Invocation of model ID x with on-demand throughput isn’t supported.",
    "inference profile",
  ],
  ["ValidationException", "The provided model identifier is invalid.", "identifier, its region"],
  ["ResourceNotFoundException", "This model has reached the end of its life.", "newer one"],
  ["ValidationException", "The guardrail identifier or version does not exist.", "guardrail"],
  ["AccessDeniedException", "You don't have access to the model.", "request access"],
  ["AccessDeniedException", "Model access is denied due to INVALID_PAYMENT_INSTRUMENT:", "payment"],
  [
    "AccessDeniedException",
    "Model access is denied due to the role is not authorized to perform the required AWS " +
      "Marketplace actions (aws-marketplace:ViewSubscriptions, aws-marketplace:Subscribe)",
    "subscription",
  ],
  ["ResourceNotFoundException", "Model use case details have not been submitted.", "form"],
  ["ValidationException", "Operation not allowed", "provider's support"],
  ["ValidationException", "Your account is not authorized to invoke this API operation.", "region"],
  [
    "ValidationException",
    "Access to this model is not available for channel program accounts.",
    "another model or account",
  ],
  [
    "ValidationException",
    "data retention mode 'default' is not available for this model",
    "data retention",
  ],
  ["ExpiredTokenException", "The security token is expired.", "expired"],
  ["InvalidSignatureException", "The signature does not match.", "clock"],
])("after %s '%s' the operator gets a hint what to change", (name, message, words) => {
  expect(hintOf(name, message)).toContain(words);
});

test("failures beyond the operator's control have no hint", () => {
  expect(hintOf("ThrottlingException", "Too many requests")).toBeUndefined();
  expect(hintOf("ValidationException", "prompt is too long: 2 tokens > 1 maximum")).toBeUndefined();
});
