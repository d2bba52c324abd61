import {
  type ExceptionName,
  exceptions,
  exceptionStatus,
  frameType,
  type oddExceptionModes,
  streamExceptions,
  texts,
} from "../faults/bedrock-modes.ts";
import { type Fault, type FaultMode, isOnWire } from "../faults/fault-modes.ts";
import { oddReply } from "../faults/bodies.ts";
import { jsonReply, type Reply } from "../reply.ts";

/** A refusal: an exception, or a reply that is not a known exception. */
type Refusal = BedrockError | Reply;

/** The answer of a fault that refuses the call; undefined for other faults. */
export function bedrockRefusal(fault: Fault, model: string): Refusal | undefined {
  const { mode, argument } = fault;
  if (!isOnWire(mode, "bedrock")) return invalid(`The fault ${mode} exists on OpenAI's wire only.`);
  return (
    refusals[mode]?.(argument) ??
    exceptionOf(sameAs[mode] ?? mode, model) ??
    oddExceptions[mode] ??
    oddReply(fault)
  );
}

/** The exceptions for faults that exist on every wire. */
const sameAs: Readonly<Partial<Record<FaultMode, keyof typeof exceptions>>> = {
  "throttle-429-bare": "exception-throttling",
  "error-500": "exception-internal-server",
  "overloaded-503": "exception-service-unavailable",
  "bad-credential": "exception-unrecognized-client",
};

const refusals: Readonly<Partial<Record<FaultMode, (argument: number | undefined) => Refusal>>> = {
  "throttle-429": (waitMs = 2000) => {
    const reply = errorReply(new BedrockError("ThrottlingException", texts.tooManyRequests));
    const seconds = String(Math.max(1, Math.ceil(waitMs / 1000)));
    return { ...reply, headers: { ...reply.headers, "retry-after": seconds } };
  },
  "error-200": () => {
    const reply = errorReply(new BedrockError("InternalServerException", texts.unexpected));
    return { ...reply, status: 200 };
  },
  "context-overflow": (which = 0) => invalid(overflowTexts[which] ?? overflowTexts[0]),
  "model-not-found-404": () =>
    new BedrockError(
      "ResourceNotFoundException",
      "Could not resolve the foundation model from the provided model identifier.",
    ),
  "bad-request-400": () =>
    invalid(
      "1 validation error detected: Value '200.0' at 'inferenceConfig.temperature' failed to " +
        "satisfy constraint: Member must have value less than or equal to 1",
    ),
};

const oddExceptions: Readonly<
  Partial<Record<FaultMode, Reply>> & Record<keyof typeof oddExceptionModes, Reply>
> = {
  "exception-request-expired": jsonReply(JSON.stringify({ message: "Request has expired." }), {
    status: 400,
    headers: { "x-amzn-errortype": "RequestExpired" },
  }),
  // Some front ends capitalise `Message` and put a namespace before the name.
  "exception-in-body": jsonReply(
    JSON.stringify({
      __type: "com.amazon.bedrock#ThrottlingException",
      Message: texts.tooManyRequests,
    }),
    { status: 429, headers: { "content-type": "application/x-amz-json-1.1" } },
  ),
  "exception-untyped": jsonReply(JSON.stringify({ message: texts.unexpected }), { status: 500 }),
  "exception-empty": jsonReply("", { status: 503 }),
};

/** Nova's text, which a streamed call gets inside the stream. */
export const novaOverflow =
  `${texts.modelFailed}Input Tokens Exceeded: Number of input tokens exceeds ` +
  "maximum length. Please update the input to try again.";

/** The texts of the model families for a prompt that is too long. */
export const overflowTexts = [
  "Input is too long for requested model.",
  `${texts.modelFailed}prompt is too long: 208310 tokens > 200000 maximum`,
  `${texts.modelFailed}input length and \`max_tokens\` exceed context limit: ` +
    "190021 + 32000 > 200000, decrease input length or `max_tokens` and try again",
  "This model's maximum context length is 131072 tokens. Please reduce the length of the prompt",
  `${texts.modelFailed}messages: too many total text bytes: 9437184 > 9000000`,
  "400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 9120",
  "Malformed input request: expected maxLength: 50000, actual: 61234, " +
    "please reformat your input and try again.",
  novaOverflow,
  "Prompt contains 40961 tokens, too large for model with 32768 maximum context length",
  `${texts.modelFailed}prompt is too long: 208,310 tokens > 200,000 maximum`,
  "Input is too long.",
] as const;

function exceptionOf(mode: string, model: string): BedrockError | undefined {
  const found = Object.entries(exceptions).find(([known]) => known === mode)?.[1];
  if (found === undefined) return undefined;
  const [name, text] = found;
  const originalStatusCode = text.endsWith("rate limited") ? 429 : 500;
  const fields = name === "ModelErrorException" ? { originalStatusCode, resourceName: model } : {};
  return new BedrockError(name, text.replace("MODEL", model), fields);
}

/** An exception that a stream can carry. */
export interface StreamException {
  /** The exception's name in the frame. */
  readonly type: string;
  /** The content of the frame, and the refusal of an unstreamed call. */
  readonly error: BedrockError;
  readonly isFirst: boolean;
}

/** The exception that a fault sends within a stream; undefined for other faults. */
export function streamException(mode: FaultMode): StreamException | undefined {
  const named = mode === "error-event-mid-stream" ? "mid-stream-internal-server" : mode;
  const [, place, kind] = /^(first-frame|mid-stream)-(.+)$/.exec(named) ?? [];
  const found = Object.entries(streamExceptions).find(([known]) => known === kind)?.[1];
  if (found === undefined) return undefined;
  const [name, text] = found;
  const original = { originalStatusCode: 500, originalMessage: "internal failure" };
  const error = new BedrockError(name, text, name === "ModelErrorException" ? original : {});
  return { type: frameType(name), error, isFirst: place === "first-frame" };
}

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
