import type { ExceptionMode } from "../faults/bedrock-modes.ts";
import type { FaultMode } from "../faults/fault-mode.ts";
import { jsonReply, type Reply } from "../frame.ts";
import { BedrockError, invalid } from "./bedrock-error.ts";

/** What refuses a call: an exception, or an answer that is none of the known exceptions. */
export type Refusal = BedrockError | Reply;

export const tooManyRequests = "Too many requests, please wait before trying again.";
export const tooManyTokens = "Too many tokens, please wait before trying again.";
export const notReady = "The model specified in the request is not ready to serve requests.";
export const unexpected =
  "The system encountered an unexpected error during processing. Try your request again.";
export const unable = "Bedrock is unable to process your request.";
/** Of Nova, which says it inside a stream where one is asked for. */
export const novaOverflow =
  "The model returned the following errors: Input Tokens Exceeded: Number of input tokens exceeds " +
  "maximum length. Please update the input to try again.";
const timedOut = "Model has timed out in processing the request. Try your request again.";
const malformed =
  "Malformed input request: #: extraneous key [top_q] is not permitted, " +
  "please reformat your input and try again.";

/** Every exception before the answer, by the fault that asks for it. */
export const exceptions: Readonly<Record<ExceptionMode, (model: string) => Refusal>> = {
  "exception-validation": () => invalid(malformed),
  "exception-model-identifier": () => invalid("The provided model identifier is invalid."),
  "exception-on-demand": (model) =>
    // The apostrophe is curly on the wire.
    invalid(
      `Invocation of model ID ${model} with on-demand throughput isn\u2019t supported. Retry ` +
        "your request with the ID or ARN of an inference profile that contains this model.",
    ),
  "exception-resource-not-found": () =>
    new BedrockError(
      "ResourceNotFoundException",
      "This model version has reached the end of its life. " +
        "Please refer to the AWS documentation for more details.",
    ),
  "exception-legacy-model": () =>
    new BedrockError(
      "ResourceNotFoundException",
      "Access denied. This Model is marked by provider as Legacy and you have not been actively " +
        "using the model in the last 30 days. Please upgrade to an active model on Amazon Bedrock",
    ),
  "exception-form-not-filled": () =>
    new BedrockError(
      "ResourceNotFoundException",
      "Model use case details have not been submitted for this account. " +
        "Fill out the use case details form before using the model.",
    ),
  "exception-access-denied": () =>
    new BedrockError(
      "AccessDeniedException",
      "You don't have access to the model with the specified model ID.",
    ),
  "exception-marketplace": () =>
    new BedrockError(
      "AccessDeniedException",
      "Model access is denied due to IAM user or service role is not authorized to perform the " +
        "required AWS Marketplace actions (aws-marketplace:ViewSubscriptions, " +
        "aws-marketplace:Subscribe) to enable access to this model.",
    ),
  "exception-operation-not-allowed": () => invalid("Operation not allowed"),
  "exception-account-not-authorized": () =>
    invalid("Your account is not authorized to invoke this API operation."),
  "exception-channel-account": () =>
    invalid(
      "Access to this model is not available for channel program accounts. Reach out to your AWS " +
        "Solution Provider or AWS Distributor for more information.",
    ),
  "exception-unrecognized-client": () =>
    new BedrockError(
      "UnrecognizedClientException",
      "The security token included in the request is invalid.",
    ),
  "exception-invalid-signature": () =>
    new BedrockError(
      "InvalidSignatureException",
      "The request signature we calculated does not match the signature you provided. Check your " +
        "AWS Secret Access Key and signing method. Consult the service documentation for details.",
    ),
  "exception-incomplete-signature": () =>
    new BedrockError(
      "IncompleteSignatureException",
      "Authorization header requires 'Signature' parameter.",
    ),
  "exception-expired-token": () =>
    new BedrockError(
      "ExpiredTokenException",
      "The security token included in the request is expired",
    ),
  "exception-request-expired": () =>
    jsonReply(JSON.stringify({ message: "Request has expired." }), {
      status: 400,
      headers: { "x-amzn-errortype": "RequestExpired" },
    }),
  "exception-throttling": () => new BedrockError("ThrottlingException", tooManyRequests),
  "exception-throttling-tokens": () => new BedrockError("ThrottlingException", tooManyTokens),
  "exception-throttling-daily": () =>
    new BedrockError(
      "ThrottlingException",
      "Too many tokens per day, please wait before trying again.",
    ),
  "exception-model-not-ready": () => new BedrockError("ModelNotReadyException", notReady),
  "exception-service-quota": () =>
    new BedrockError(
      "ServiceQuotaExceededException",
      "Your request exceeds the service quota for your account.",
    ),
  "exception-model-timeout": () => new BedrockError("ModelTimeoutException", timedOut),
  "exception-model-error": (model) => modelError(model, 500),
  "exception-model-error-throttled": (model) => modelError(model, 429),
  "exception-internal-server": () => new BedrockError("InternalServerException", unexpected),
  "exception-service-unavailable": () => new BedrockError("ServiceUnavailableException", unable),
  "exception-conflict": () =>
    new BedrockError(
      "ConflictException",
      "Error occurred because of a conflict while performing an operation.",
    ),
  "exception-unknown-operation": () =>
    new BedrockError("UnknownOperationException", "The requested operation is not recognized."),
  "exception-serialization": () =>
    new BedrockError("SerializationException", "NUMBER_VALUE can not be converted to a String"),
  "exception-in-body": () =>
    // Some front ends write the message in upper case, and the name behind a namespace.
    jsonReply(
      JSON.stringify({
        __type: "com.amazon.bedrock#ThrottlingException",
        Message: tooManyRequests,
      }),
      { status: 429, headers: { "content-type": "application/x-amz-json-1.1" } },
    ),
  "exception-untyped": () => jsonReply(JSON.stringify({ message: unexpected }), { status: 500 }),
  "exception-empty": () => jsonReply("", { status: 503 }),
};

export function modelError(model: string, originalStatusCode: number): BedrockError {
  const message =
    "The model returned the following errors: " +
    (originalStatusCode === 429 ? "rate limited" : "internal failure");
  return new BedrockError("ModelErrorException", message, {
    originalStatusCode,
    resourceName: model,
  });
}

/** An exception that a stream can carry. */
export interface StreamException {
  /** As the frame names it. */
  readonly type: string;
  /** What the frame says, and what a call that is not streamed is refused with. */
  readonly error: BedrockError;
  readonly isFirst: boolean;
}

/** The exception that the fault puts into a stream; undefined for other faults. */
export function streamException(mode: FaultMode): StreamException | undefined {
  const name = mode === "error-event-mid-stream" ? "mid-stream-internal-server" : mode;
  const [, place, kind = ""] = /^(first-frame|mid-stream)-(.+)$/.exec(name) ?? [];
  const make = streamExceptions.get(kind);
  return make === undefined ? undefined : { ...make(), isFirst: place === "first-frame" };
}

const streamExceptions: ReadonlyMap<string, () => Omit<StreamException, "isFirst">> = new Map([
  [
    "internal-server",
    () => ({
      type: "internalServerException",
      error: new BedrockError("InternalServerException", unexpected),
    }),
  ],
  [
    "model-stream-error",
    () => ({
      type: "modelStreamErrorException",
      error: new BedrockError("ModelErrorException", "The model stopped in its answer.", {
        originalStatusCode: 500,
        originalMessage: "internal failure",
      }),
    }),
  ],
  ["validation", () => ({ type: "validationException", error: invalid(malformed) })],
  [
    "throttling",
    () => ({
      type: "throttlingException",
      error: new BedrockError("ThrottlingException", tooManyTokens),
    }),
  ],
  [
    "service-unavailable",
    () => ({
      type: "serviceUnavailableException",
      error: new BedrockError("ServiceUnavailableException", unable),
    }),
  ],
  [
    "model-timeout",
    () => ({
      type: "modelTimeoutException",
      error: new BedrockError("ModelTimeoutException", timedOut),
    }),
  ],
]);
