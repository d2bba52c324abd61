import { adminErrors } from "./admin-error.ts";
import { maskApiKeys } from "../keys/api-key.ts";
import { bodyErrors } from "./body-errors.ts";
import type { RefusalExplanation } from "./refusal.ts";

/**
 * Every error a caller can see. `docs/errors.md` repeats this table; a test keeps the two equal.
 * The shape is OpenAI's: `{"error":{"message","type","param","code"}}`.
 */
export const gatewayErrors = {
  invalid_api_key: {
    status: 401,
    type: "invalid_request_error",
    code: "invalid_api_key",
    when: "The key is missing, unknown, expired, revoked or of another environment.",
  },
  network_not_allowed: {
    status: 403,
    type: "invalid_request_error",
    code: "network_not_allowed",
    when: "The key may not be used from the caller's network address.",
  },
  invalid_model: {
    status: 400,
    type: "invalid_request_error",
    code: "invalid_model",
    when: "The alias is unknown, not allowed for the key, or of another kind.",
  },
  context_length_exceeded: {
    status: 400,
    type: "invalid_request_error",
    code: "context_length_exceeded",
    when: "The input exceeds the model's context window.",
  },
  rate_limit_exceeded: {
    status: 429,
    type: "tokens",
    code: "rate_limit_exceeded",
    when: "A limit of the plan is reached; `retry-after-ms` has the wait.",
  },
  model_unavailable: {
    status: 503,
    type: "server_error",
    code: "model_unavailable",
    when: "No target can answer now, or Sluice is overloaded or shutting down.",
  },
  internal_error: {
    status: 500,
    type: "server_error",
    code: "internal_error",
    when: "An unexpected failure inside Sluice; quote `x-request-id`.",
  },
  ...bodyErrors,
  upstream_rejected: {
    status: 400,
    type: "invalid_request_error",
    code: null,
    when: "The upstream refused the request; the message is the upstream's.",
  },
  content_refused: {
    status: 400,
    type: "invalid_request_error",
    code: "content_policy_violation",
    when: "The upstream, or a hook of the gateway, refused the content.",
  },
  answer_too_large: {
    status: 400,
    type: "invalid_request_error",
    code: "answer_too_large",
    when: "The answer exceeded a limit of the gateway, which the message names.",
  },
  answer_mismatch: {
    status: 502,
    type: "server_error",
    code: "answer_mismatch",
    when: "The answer does not match `response_format`, after a second try.",
  },
  bad_http_request: {
    status: 400,
    type: "invalid_request_error",
    code: null,
    when: "The HTTP message is ambiguous (see below).",
  },
  model_not_found: {
    status: 404,
    type: "invalid_request_error",
    code: "model_not_found",
    when: "`GET /v1/models/{id}` names a model that the environment lacks.",
  },
  unknown_url: {
    status: 404,
    type: "invalid_request_error",
    code: "unknown_url",
    when: "No endpoint has this path, or no environment has this host.",
  },
  method_not_allowed: {
    status: 405,
    type: "invalid_request_error",
    code: null,
    when: "The endpoint does not take this method; `allow` lists those it takes.",
  },
  request_timeout: {
    status: 408,
    type: "invalid_request_error",
    code: "request_timeout",
    when: "The request body did not arrive in time.",
  },
  request_too_large: {
    status: 413,
    type: "invalid_request_error",
    code: "request_too_large",
    when: "The body is too large, as sent or after decompression.",
  },
  unsupported_content_type: {
    status: 415,
    type: "invalid_request_error",
    code: "unsupported_content_type",
    when: "The content type or content encoding is not supported.",
  },
  deadline_exceeded: {
    status: 408,
    type: "invalid_request_error",
    code: "deadline_exceeded",
    when: "The answer did not end within `x-sluice-timeout-ms`.",
  },
  caller_left: {
    status: 499,
    type: "invalid_request_error",
    code: "caller_left",
    when: "The caller left before the end; only in the ledger and metrics.",
  },
  idempotency_key_conflict: {
    status: 409,
    type: "invalid_request_error",
    code: "idempotency_key_reused",
    when: "The `Idempotency-Key` belongs to another call.",
  },
  idempotency_key_in_use: {
    status: 409,
    type: "invalid_request_error",
    code: "idempotency_key_in_use",
    when: "A call with this `Idempotency-Key` still runs; repeat it later.",
  },
  answer_not_kept: {
    status: 409,
    type: "invalid_request_error",
    code: "answer_not_kept",
    when: "The call was made, but its answer was too large to be stored.",
  },
  headers_too_large: {
    status: 431,
    type: "invalid_request_error",
    code: "headers_too_large",
    when: "The request has more than 100 headers.",
  },
} as const satisfies Record<string, GatewayErrorRow>;

export interface GatewayErrorRow {
  readonly status: number;
  readonly type: string;
  readonly code: string | null;
  readonly when: string;
}

export type GatewayErrorName = keyof typeof gatewayErrors | keyof typeof adminErrors;

export interface GatewayErrorDetails {
  /** Tells the caller what to change. Never holds prompts, secrets or causes. */
  readonly message: string;
  /** Path of the request field at fault. */
  readonly param?: string | null;
  /** Overrides the type of the row. */
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** For the log only. */
  readonly cause?: unknown;
  /**
   * For `sluice explain`; never sent to the caller. Without it, the row and `param` explain the
   * error.
   */
  readonly explanation?: RefusalExplanation;
}

const rows: Readonly<Record<GatewayErrorName, GatewayErrorRow>> = {
  ...gatewayErrors,
  ...adminErrors,
};

/** The only error that becomes an answer; `edge/replies/error-reply` writes it. */
export class GatewayError extends Error {
  override readonly name = "GatewayError";
  readonly rowName: GatewayErrorName;
  readonly row: GatewayErrorRow;
  readonly param: string | null;
  readonly type: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly explanation: RefusalExplanation | undefined;

  constructor(name: GatewayErrorName, details: GatewayErrorDetails) {
    super(details.message, { cause: details.cause });
    this.rowName = name;
    this.row = rows[name];
    this.param = details.param ?? null;
    this.type = details.type ?? this.row.type;
    this.headers = details.headers ?? {};
    this.explanation = details.explanation;
  }

  get status(): number {
    return this.row.status;
  }

  get code(): string | null {
    return this.row.code;
  }

  /** OpenAI's error object, always with all four keys. API keys are masked. */
  toBody(): {
    error: { message: string; type: string; param: string | null; code: string | null };
  } {
    return {
      error: {
        // A part of a caller's text may end within a character.
        message: maskApiKeys(this.message.toWellFormed()),
        type: this.type,
        param: this.param && maskApiKeys(this.param),
        code: this.code,
      },
    };
  }
}

/** The answer to any unexpected error. The cause is only logged. */
export function internalError(cause: unknown): GatewayError {
  return new GatewayError("internal_error", {
    message: "The server had an error while processing your request. Please retry your request.",
    cause,
  });
}
