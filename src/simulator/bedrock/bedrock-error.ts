import { exceptionStatus, texts, type ExceptionName } from "../faults/bedrock-modes.ts";
import { jsonReply, type Reply } from "../frame.ts";

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

/** What the model's own validation says, behind the words that the provider puts before it. */
export function modelError(message: string): BedrockError {
  return invalid(`${texts.modelFailed}${message}`);
}
