/** The faults that exist on Bedrock's wire only, with their meanings. */

/** Every exception of the provider's runtime that has a status, and its status. */
export const exceptionStatus = {
  AccessDeniedException: 403,
  ConflictException: 400,
  ExpiredTokenException: 403,
  IncompleteSignatureException: 403,
  InternalServerException: 500,
  InvalidSignatureException: 403,
  MissingAuthenticationTokenException: 403,
  ModelErrorException: 424,
  ModelNotReadyException: 429,
  ModelTimeoutException: 408,
  ResourceNotFoundException: 404,
  SerializationException: 400,
  ServiceQuotaExceededException: 400,
  ServiceUnavailableException: 503,
  ThrottlingException: 429,
  UnknownOperationException: 404,
  UnrecognizedClientException: 403,
  ValidationException: 400,
} as const;

export type ExceptionName = keyof typeof exceptionStatus;

/** The provider's texts that are used more than once. */
export const texts = {
  tooManyRequests: "Too many requests, please wait before trying again.",
  tooManyTokens: "Too many tokens, please wait before trying again.",
  notReady: "The model specified in the request is not ready to serve requests.",
  unexpected:
    "The system encountered an unexpected error during processing. Try your request again.",
  unable: "Bedrock is unable to process your request.",
  timedOut: "Model has timed out in processing the request. Try your request again.",
  malformed:
    "Malformed input request: #: extraneous key [top_q] is not permitted, " +
    "please reformat your input and try again.",
  invalidToken: "The security token included in the request is invalid.",
  expiredToken: "The security token included in the request is expired",
  mismatch:
    "The request signature we calculated does not match the signature you provided. Check your " +
    "AWS Secret Access Key and signing method. Consult the service documentation for details.",
  unknownModel: "The provided model identifier is invalid.",
  // The apostrophe is curly on the wire.
  onDemand:
    "Invocation of model ID MODEL with on-demand throughput isn\u2019t supported. Retry your " +
    "request with the ID or ARN of an inference profile that contains this model.",
  ended:
    "This model version has reached the end of its life. " +
    "Please refer to the AWS documentation for more details.",
  legacy:
    "Access denied. This Model is marked by provider as Legacy and you have not been actively " +
    "using the model in the last 30 days. Please upgrade to an active model on Amazon Bedrock",
  unknownOperation: "The requested operation is not recognized.",
  modelFailed: "The model returned the following errors: ",
} as const;

/** Exceptions in place of an answer: name and text, in which `MODEL` is the model. */
export const exceptions = {
  "exception-validation": ["ValidationException", texts.malformed],
  "exception-model-identifier": ["ValidationException", texts.unknownModel],
  "exception-on-demand": ["ValidationException", texts.onDemand],
  "exception-resource-not-found": ["ResourceNotFoundException", texts.ended],
  "exception-legacy-model": ["ResourceNotFoundException", texts.legacy],
  "exception-form-not-filled": [
    "ResourceNotFoundException",
    "Model use case details have not been submitted for this account. " +
      "Fill out the use case details form before using the model.",
  ],
  "exception-access-denied": [
    "AccessDeniedException",
    "You don't have access to the model with the specified model ID.",
  ],
  "exception-marketplace": [
    "AccessDeniedException",
    "Model access is denied due to IAM user or service role is not authorized to perform the " +
      "required AWS Marketplace actions (aws-marketplace:ViewSubscriptions, " +
      "aws-marketplace:Subscribe) to enable access to this model.",
  ],
  "exception-operation-not-allowed": ["ValidationException", "Operation not allowed"],
  "exception-account-not-authorized": [
    "ValidationException",
    "Your account is not authorized to invoke this API operation.",
  ],
  "exception-channel-account": [
    "ValidationException",
    "Access to this model is not available for channel program accounts. Reach out to your AWS " +
      "Solution Provider or AWS Distributor for more information.",
  ],
  "exception-unrecognized-client": ["UnrecognizedClientException", texts.invalidToken],
  "exception-invalid-signature": ["InvalidSignatureException", texts.mismatch],
  "exception-incomplete-signature": [
    "IncompleteSignatureException",
    "Authorization header requires 'Signature' parameter.",
  ],
  "exception-expired-token": ["ExpiredTokenException", texts.expiredToken],
  "exception-throttling": ["ThrottlingException", texts.tooManyRequests],
  "exception-throttling-tokens": ["ThrottlingException", texts.tooManyTokens],
  "exception-throttling-daily": [
    "ThrottlingException",
    "Too many tokens per day, please wait before trying again.",
  ],
  "exception-model-not-ready": ["ModelNotReadyException", texts.notReady],
  "exception-service-quota": [
    "ServiceQuotaExceededException",
    "Your request exceeds the service quota for your account.",
  ],
  "exception-model-timeout": ["ModelTimeoutException", texts.timedOut],
  "exception-model-error": ["ModelErrorException", `${texts.modelFailed}internal failure`],
  "exception-model-error-throttled": ["ModelErrorException", `${texts.modelFailed}rate limited`],
  "exception-internal-server": ["InternalServerException", texts.unexpected],
  "exception-service-unavailable": ["ServiceUnavailableException", texts.unable],
  "exception-conflict": [
    "ConflictException",
    "Error occurred because of a conflict while performing an operation.",
  ],
  "exception-unknown-operation": ["UnknownOperationException", texts.unknownOperation],
  "exception-serialization": [
    "SerializationException",
    "NUMBER_VALUE can not be converted to a String",
  ],
} as const satisfies Readonly<Record<string, readonly [ExceptionName, string]>>;

/** Answers that are not known exceptions. */
export const oddExceptionModes = {
  "exception-request-expired": "RequestExpired 400",
  "exception-in-body": "ThrottlingException 429, named in the body alone",
  "exception-untyped": "status 500, a message without the name of an exception",
  "exception-empty": "status 503 without a body or the name of an exception",
} as const;

/** Exceptions that a stream can carry, as its first frame or after some. */
export const streamExceptions = {
  "internal-server": ["InternalServerException", texts.unexpected],
  "model-stream-error": ["ModelErrorException", "The model stopped in its answer."],
  validation: ["ValidationException", texts.malformed],
  throttling: ["ThrottlingException", texts.tooManyTokens],
  "service-unavailable": ["ServiceUnavailableException", texts.unable],
  "model-timeout": ["ModelTimeoutException", texts.timedOut],
} as const satisfies Readonly<Record<string, readonly [ExceptionName, string]>>;

type StreamExceptionKind = keyof typeof streamExceptions;

/** The name of an exception in frames. */
export function frameType(name: string): string {
  if (name === "ModelErrorException") return "modelStreamErrorException";
  return name.charAt(0).toLowerCase() + name.slice(1);
}

/** Broken frames. The argument is the number of good frames before. */
const frameModes = {
  "truncated-frame": "a stream that ends cleanly in the middle of a frame",
  "cut-in-length-prefix": "a stream that ends cleanly two bytes into a frame",
  "bad-prelude-crc": "a frame whose prelude does not match its checksum",
  "bad-message-crc": "a frame that does not match its checksum",
  "oversized-length": "a prelude that promises 4 GiB, and then silence (argument: bytes)",
  "undersized-length": "a prelude whose length is less than that of the smallest frame",
  "bad-headers-length": "a frame whose headers are said to be longer than itself",
  "no-message-stop": "a stream that ends cleanly without messageStop and metadata",
  "no-metadata": "a stream that ends cleanly without metadata",
  "transport-error-frame": "a frame of type error within a stream",
} as const;

export const bedrockModes: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    Object.entries(exceptions).map(([mode, [name]]) => [mode, `${name} ${exceptionStatus[name]}`]),
  ),
  ...oddExceptionModes,
  ...streamModes("first-frame", "is the first frame of a 200"),
  ...streamModes("mid-stream", "within a stream"),
  ...frameModes,
};

export type BedrockMode =
  | keyof typeof exceptions
  | keyof typeof oddExceptionModes
  | `${"first-frame" | "mid-stream"}-${StreamExceptionKind}`
  | keyof typeof frameModes;

function streamModes(place: string, where: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(streamExceptions).map(([kind, [name]]) => [
      `${place}-${kind}`,
      `${frameType(name)} ${where}`,
    ]),
  );
}
