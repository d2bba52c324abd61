import { exceptionStatus, texts, type ExceptionName } from "../faults/bedrock-modes.ts";
import { jsonReply, type Reply } from "../frame.ts";

/** A refusal, as an exception of the provider. */
export class BedrockError extends Error {
  override readonly name: ExceptionName;
  readonly status: number;
  /** Fields of the body besides the message, for example `originalStatusCode`. */
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

/** A refusal that a stream reports in its first frame, after a 200. */
export class LateRefusal extends BedrockError {}

export function invalid(message: string): BedrockError {
  return new BedrockError("ValidationException", message);
}

/** The exception's name is in a header, followed by the namespace of its service. */
export function errorReply({ name, status, message, fields }: BedrockError): Reply {
  const type = `${name}:http://internal.amazon.com/coral/com.amazon.bedrock/`;
  return jsonReply(JSON.stringify({ message, ...fields }), {
    status,
    headers: { "x-amzn-errortype": type },
  });
}

/** An error of the model's own validation, after the provider's prefix for these. */
export function modelError(message: string): BedrockError {
  return invalid(`${texts.modelFailed}${message}`);
}
