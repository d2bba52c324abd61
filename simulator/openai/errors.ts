import { jsonReply, type Reply } from "../reply.ts";
import { type Fault, type FaultMode, isOnWire } from "../faults/fault-modes.ts";
import { oddReply, withBodyFault } from "../faults/bodies.ts";
import type { JsonRecord } from "../json.ts";

/** A refusal, as OpenAI's error body. */
export class WireError extends Error {
  override readonly name = "WireError";
  readonly status: number;
  readonly body: WireErrorBody;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    body: Partial<WireErrorBody> & { readonly message: string },
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(body.message);
    this.status = status;
    this.body = { type: "invalid_request_error", param: null, code: null, ...body };
    this.headers = headers;
  }
}

interface WireErrorBody {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | null;
}

/** `{"error":{...}}`, keys in OpenAI's order. */
export function errorText({ message, type, param, code }: WireErrorBody): string {
  return JSON.stringify({ error: { message, type, param, code } });
}

export function invalidRequest(
  message: string,
  param: string,
  code: string | null = "invalid_value",
): WireError {
  return new WireError(400, { message, param, code });
}

export function missing(param: string): WireError {
  const message = `Missing required parameter: '${param}'.`;
  return invalidRequest(message, param, "missing_required_parameter");
}

export function tooLong(param: string, most: number, length: number): WireError {
  const message = `Invalid '${param}': array too long. Expected at most ${most}, but got ${length}.`;
  return invalidRequest(message, param, "array_above_max_length");
}

export function wrongType(param: string, expected: string, value: unknown): WireError {
  const found = value === null ? "null" : Array.isArray(value) ? "an array" : typeof value;
  const message = `Invalid type for '${param}': expected ${expected}, but got ${found} instead.`;
  return invalidRequest(message, param, "invalid_type");
}

/** OpenAI's text for a prompt that leaves too little room in the context window. */
export function contextExceeded(
  contextWindow: number,
  promptTokens: number,
  maxTokens: number | undefined,
): WireError {
  const total = promptTokens + (maxTokens ?? 0);
  const detail =
    maxTokens === undefined || promptTokens > contextWindow
      ? `However, your messages resulted in ${promptTokens} tokens. ` +
        "Please reduce the length of the messages."
      : `However, you requested ${total} tokens (${promptTokens} in the messages, ` +
        `${maxTokens} in the completion). Please reduce the length of the messages or completion.`;
  return invalidRequest(
    `This model's maximum context length is ${contextWindow} tokens. ${detail}`,
    "messages",
    "context_length_exceeded",
  );
}

export function wrongKey(key: string): WireError {
  const masked = key.length > 8 ? `${key.slice(0, 3)}****${key.slice(-4)}` : "****";
  const message =
    key === "" ? "You didn't provide an API key." : `Incorrect API key provided: ${masked}.`;
  return new WireError(401, { message, code: key === "" ? null : "invalid_api_key" });
}

/** Throws `WireError` if the fault is a refusal. Undefined for faults of other answers. */
export function refusalReply(fault: Fault, model: string): Reply | undefined {
  if (!isOnWire(fault.mode, "openai")) {
    const message = `The fault ${fault.mode} exists on Bedrock's wire only.`;
    throw new WireError(400, { message, code: "fault_of_other_wire" });
  }
  const error = refusalErrors[fault.mode]?.(model, fault.argument);
  if (error !== undefined) throw error;
  return oddReply(fault);
}

/** An unstreamed answer with the fault applied; an error within streams refuses it. */
export function bodyReply(body: JsonRecord, tokens: number, fault: Fault): Reply {
  if (fault.mode === "error-event-mid-stream") return errorReply(serverError(500));
  return withBodyFault(body, { tokens, fault });
}

export function errorReply({ status, headers, body }: WireError, text = errorText(body)): Reply {
  return jsonReply(text, { status, headers });
}

export function serverError(status: 500 | 503): WireError {
  const message =
    status === 500
      ? "The server had an error while processing your request. Sorry about that!"
      : "The engine is currently overloaded, please try again later";
  return new WireError(status, { message, type: "server_error" });
}

type RefusalError = (model: string, argument: number | undefined) => WireError;

const refusalErrors: Readonly<Partial<Record<FaultMode, RefusalError>>> = {
  "throttle-429": (model, waitMs = 2000) => throttled(model, waitMs),
  "throttle-429-bare": (model) => throttled(model, undefined),
  "error-500": () => serverError(500),
  "error-200": () => serverError(500),
  "overloaded-503": () => serverError(503),
  "context-overflow": () => contextExceeded(8192, 8227, undefined),
  "bad-credential": () => wrongKey("sk-simulator-0000"),
  "model-not-found-404": (model) =>
    new WireError(404, {
      message: `The model \`${model}\` does not exist or you do not have access to it.`,
      code: "model_not_found",
    }),
  "bad-request-400": () =>
    invalidRequest(
      "Invalid 'temperature': decimal above maximum value. " +
        "Expected a value <= 2, but got 200 instead.",
      "temperature",
      "decimal_above_max_value",
    ),
};

function throttled(model: string, waitMs: number | undefined): WireError {
  const hint = waitMs === undefined ? "" : ` Please try again in ${waitMs / 1000}s.`;
  const headers: Record<string, string> = {};
  if (waitMs !== undefined) {
    headers["retry-after"] = String(Math.max(1, Math.ceil(waitMs / 1000)));
    headers["retry-after-ms"] = String(waitMs);
  }
  const message =
    `Rate limit reached for ${model} in organization org-simulator on tokens per min (TPM): ` +
    `Limit 30000, Used 29900, Requested 500.${hint}`;
  return new WireError(429, { message, type: "tokens", code: "rate_limit_exceeded" }, headers);
}
