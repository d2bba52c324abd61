import { jsonReply, type Reply } from "../frame.ts";

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

/** An answer other than 200, in the terms of the provider's exceptions. */
export class BedrockError extends Error {
  override readonly name: ExceptionName;
  readonly status: number;
  /** What the body has beside the message, for example `originalStatusCode`. */
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(
    name: ExceptionName,
    message: string,
    fields: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
    this.name = name;
    this.status = exceptionStatus[name];
    this.fields = fields;
  }
}

/** A call for a stream gets a 200 first, and then this. */
export class LateRefusal extends BedrockError {}

export function invalid(message: string): BedrockError {
  return new BedrockError("ValidationException", message);
}

/** The name of an exception travels in a header, behind it the namespace of its service. */
export function errorReply({ name, status, message, fields }: BedrockError): Reply {
  const type = `${name}:http://internal.amazon.com/coral/com.amazon.bedrock/`;
  return jsonReply(JSON.stringify({ message, ...fields }), {
    status,
    headers: { "x-amzn-errortype": type },
  });
}
