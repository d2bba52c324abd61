/** Exceptions of the provider, and what a caller sees of each. */

export interface Seen {
  readonly status: number;
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string | null;
  };
}

export const unavailable = (reason: string): Seen => ({
  status: 503,
  error: {
    message: `The model is temporarily unavailable: ${reason}. Please retry with exponential backoff.`,
    type: "server_error",
    param: null,
    code: "model_unavailable",
  },
});
export const misconfigured = (reason: string): Seen => ({
  status: 503,
  error: {
    message: `The model is unavailable: ${reason}. Please contact the operator.`,
    type: "server_error",
    param: null,
    code: "model_unavailable",
  },
});
export const refused = (
  message: string,
  code: string | null = null,
  param: string | null = null,
): Seen => ({
  status: 400,
  error: { message, type: "invalid_request_error", param, code },
});
export const limiting = unavailable("the provider is limiting requests");
export const overloaded = unavailable("the provider is overloaded");
export const failing = unavailable("the provider answered with an error");
export const late = unavailable("the provider did not answer in time");
export const badCredential = misconfigured("the provider refused the gateway's credential");
export const unknownModel = misconfigured("the provider does not know the model");
export const overflow = (text: string): Seen =>
  refused(
    `This model's maximum context length is 8192 tokens. ${text}`,
    "context_length_exceeded",
    "messages",
  );

export interface Exception {
  readonly name: string;
  readonly status: number;
  readonly message: string;
  readonly fields?: object;
  readonly seen: Seen;
}

export const onDemand =
  "Invocation of model ID anthropic.claude-sonnet-4 with on-demand throughput isn\u2019t supported. " +
  "Retry your request with the ID or ARN of an inference profile that contains this model.";
export const tooMany = "Too many tokens, please wait before trying again.";
export const promptTooLong = "prompt is too long: 9000 tokens > 8192 maximum";
export const novaTooLong = "Input Tokens Exceeded: Number of input tokens exceeds maximum length.";
export const mistralTooLong =
  "Prompt contains 40,961 tokens, too large for model with 32,768 maximum context length";
export const malformed = "Malformed input request: #: extraneous key [top_k] is not permitted";

/** An exception whose frame has no status. */
export type InStream = Omit<Exception, "status">;

/** Types of exception frames, in the provider's own spelling. */
export const inStream: readonly InStream[] = [
  { name: "validationException", message: malformed, seen: refused(malformed) },
  { name: "validationException", message: promptTooLong, seen: overflow(promptTooLong) },
  { name: "validationException", message: novaTooLong, seen: overflow(novaTooLong) },
  { name: "validationException", message: mistralTooLong, seen: overflow(mistralTooLong) },
  { name: "modelStreamErrorException", message: novaTooLong, seen: overflow(novaTooLong) },
  { name: "validationException", message: "Operation not allowed", seen: badCredential },
  { name: "throttlingException", message: tooMany, seen: limiting },
  { name: "internalServerException", message: "Internal failure", seen: failing },
  {
    name: "serviceUnavailableException",
    message: "Bedrock is unable to process your request.",
    seen: overloaded,
  },
  { name: "modelTimeoutException", message: "Model has timed out.", seen: late },
  {
    name: "modelStreamErrorException",
    message: "The model stream failed.",
    fields: { originalStatusCode: 500, originalMessage: "failed" },
    seen: failing,
  },
];

export const bodyOf = ({ error }: Seen): string => JSON.stringify({ error });
