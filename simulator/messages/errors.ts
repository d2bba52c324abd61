import { oddReply } from "../faults/bodies.ts";
import { type Fault, type FaultMode, isOnWire } from "../faults/fault-modes.ts";
import { jsonReply, type Reply } from "../reply.ts";

/** A refusal, as the Messages API's error body. */
export class MessagesError extends Error {
  override readonly name = "MessagesError";
  readonly status: number;
  readonly type: string;

  constructor(status: number, type: string, message: string) {
    super(message);
    this.status = status;
    this.type = type;
  }
}

export function invalid(message: string): MessagesError {
  return new MessagesError(400, "invalid_request_error", message);
}

export const serverError = new MessagesError(500, "api_error", "Internal server error");

export function errorText({ type, message }: MessagesError, requestId: string): string {
  return JSON.stringify({ type: "error", error: { type, message }, request_id: requestId });
}

export function errorReply(error: MessagesError, requestId: string): Reply {
  const headers = { "request-id": requestId };
  return jsonReply(errorText(error, requestId), { status: error.status, headers });
}

/** The answer of a fault that refuses the call; undefined for other faults. */
export function refusalReply(fault: Fault, model: string, requestId: string): Reply | undefined {
  // Server-sent events have the faults of OpenAI's.
  if (!isOnWire(fault.mode, "openai")) {
    return errorReply(invalid(`The fault ${fault.mode} exists on Bedrock's wire only.`), requestId);
  }
  if (fault.mode === "error-200") return { ...errorReply(serverError, requestId), status: 200 };
  const error = refusals[fault.mode]?.(model);
  if (error === undefined) return oddReply(fault);
  const reply = errorReply(error, requestId);
  if (fault.mode !== "throttle-429") return reply;
  const seconds = String(Math.max(1, Math.ceil((fault.argument ?? 2000) / 1000)));
  return { ...reply, headers: { ...reply.headers, "retry-after": seconds } };
}

type Refusal = (model: string) => MessagesError;

const throttled = (): MessagesError =>
  new MessagesError(
    429,
    "rate_limit_error",
    "This request would exceed your organization's rate limit of 30,000 input tokens per minute.",
  );

const refusals: Readonly<Partial<Record<FaultMode, Refusal>>> = {
  "throttle-429": throttled,
  "throttle-429-bare": throttled,
  "error-500": () => serverError,
  "overloaded-503": () => new MessagesError(529, "overloaded_error", "Overloaded"),
  "context-overflow": () => tooLong(208_310, 200_000),
  "bad-credential": () => new MessagesError(401, "authentication_error", "invalid x-api-key"),
  "model-not-found-404": (model) => new MessagesError(404, "not_found_error", `model: ${model}`),
  "bad-request-400": () => invalid("temperature: range: 0..1"),
};

export function tooLong(tokens: number, most: number): MessagesError {
  return invalid(`prompt is too long: ${tokens} tokens > ${most} maximum`);
}
