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

export interface WireErrorBody {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | null;
}

/** `{"error":{...}}`, keys in OpenAI's order. */
export function errorText({ message, type, param, code }: WireErrorBody): string {
  return JSON.stringify({ error: { message, type, param, code } });
}

export function invalidRequest(message: string, param: string, code: string | null): WireError {
  return new WireError(400, { message, param, code });
}

export function wrongType(param: string, expected: string, value: unknown): WireError {
  const message = `Invalid type for '${param}': expected ${expected}, but got ${named(value)} instead.`;
  return invalidRequest(message, param, "invalid_type");
}

function named(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "number") return Number.isInteger(value) ? "an integer" : "a decimal";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
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
  if (key === "") {
    return new WireError(401, {
      message:
        "You didn't provide an API key. You need to provide your API key in an Authorization " +
        "header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
    });
  }
  const masked = key.length > 8 ? `${key.slice(0, 3)}****${key.slice(-4)}` : "****";
  return new WireError(401, {
    message: `Incorrect API key provided: ${masked}.`,
    code: "invalid_api_key",
  });
}
