/** The faults that only Bedrock's wire can show, each with what it means. */

/** An exception in place of an answer, its status and all. */
export const exceptionModes = {
  "exception-validation": "ValidationException 400, malformed input",
  "exception-model-identifier": "ValidationException 400, no such model identifier",
  "exception-on-demand": "ValidationException 400, the model needs an inference profile",
  "exception-resource-not-found": "ResourceNotFoundException 404, the model's life is over",
  "exception-legacy-model": "ResourceNotFoundException 404, a legacy model not used of late",
  "exception-form-not-filled": "ResourceNotFoundException 404, use case details are missing",
  "exception-access-denied": "AccessDeniedException 403, no access to the model",
  "exception-marketplace": "AccessDeniedException 403, no subscription to the model",
  "exception-operation-not-allowed": "ValidationException 400, the account is held back",
  "exception-account-not-authorized": "ValidationException 400, the account has no access",
  "exception-channel-account": "ValidationException 400, not for accounts of resellers",
  "exception-unrecognized-client": "UnrecognizedClientException 403",
  "exception-invalid-signature": "InvalidSignatureException 403",
  "exception-incomplete-signature": "IncompleteSignatureException 403",
  "exception-expired-token": "ExpiredTokenException 403",
  "exception-request-expired": "RequestExpired 400",
  "exception-throttling": "ThrottlingException 429, too many requests",
  "exception-throttling-tokens": "ThrottlingException 429, too many tokens",
  "exception-throttling-daily": "ThrottlingException 429, too many tokens per day",
  "exception-model-not-ready": "ModelNotReadyException 429",
  "exception-service-quota": "ServiceQuotaExceededException 400",
  "exception-model-timeout": "ModelTimeoutException 408",
  "exception-model-error": "ModelErrorException 424, the model's own status was 500",
  "exception-model-error-throttled": "ModelErrorException 424, the model's own status was 429",
  "exception-internal-server": "InternalServerException 500",
  "exception-service-unavailable": "ServiceUnavailableException 503",
  "exception-conflict": "ConflictException 400",
  "exception-unknown-operation": "UnknownOperationException 404",
  "exception-serialization": "SerializationException 400",
  "exception-in-body": "ThrottlingException 429, named in the body alone",
  "exception-untyped": "status 500, a message without the name of an exception",
  "exception-empty": "status 503 without a body or the name of an exception",
} as const;

/** Status 200, and then an exception before anything else. */
export const firstFrameModes = {
  "first-frame-internal-server": "internalServerException is the first frame of a 200",
  "first-frame-model-stream-error": "modelStreamErrorException is the first frame of a 200",
  "first-frame-validation": "validationException is the first frame of a 200",
  "first-frame-throttling": "throttlingException is the first frame of a 200",
  "first-frame-service-unavailable": "serviceUnavailableException is the first frame of a 200",
  "first-frame-model-timeout": "modelTimeoutException is the first frame of a 200",
} as const;

/** An exception after the stream has begun. Arguments are how many frames come before. */
export const midStreamModes = {
  "mid-stream-internal-server": "internalServerException within a stream",
  "mid-stream-model-stream-error": "modelStreamErrorException within a stream",
  "mid-stream-validation": "validationException within a stream",
  "mid-stream-throttling": "throttlingException within a stream",
  "mid-stream-service-unavailable": "serviceUnavailableException within a stream",
  "mid-stream-model-timeout": "modelTimeoutException within a stream",
} as const;

/** Frames that are not as they should be. Arguments are how many good frames come before. */
export const frameModes = {
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

export const bedrockModes = {
  ...exceptionModes,
  ...firstFrameModes,
  ...midStreamModes,
  ...frameModes,
} as const;

export type ExceptionMode = keyof typeof exceptionModes;
export type FrameMode = keyof typeof frameModes;
