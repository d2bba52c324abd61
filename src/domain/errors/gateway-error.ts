import tables from "./errors.json" with { type: "json" };
import { retryHeaders } from "../limits/headers.ts";
import type { LimitState } from "../limits/limit-scope.ts";
import { maskApiKeys } from "../keys/api-key.ts";
import type { RefusalExplanation } from "./refusal.ts";

export interface GatewayErrorRow {
  readonly status: number;
  readonly type: string;
  readonly code: string | null;
  readonly when: string;
}

/**
 * Every error a caller can see, and those that only the control plane has. `docs/errors.md` repeats
 * the first table, which a test keeps equal; the reference of the admin API has both.
 */
export const { gateway: gatewayErrors, admin: adminErrors } = tables satisfies Readonly<
  Record<"gateway" | "admin", Readonly<Record<string, GatewayErrorRow>>>
>;

export type GatewayErrorName = keyof typeof gatewayErrors | keyof typeof adminErrors;

export interface GatewayErrorDetails {
  /** Tells the caller what to change. Never holds prompts, secrets or causes. */
  readonly message: string;
  /** Path of the request field at fault. */
  readonly param?: string | null;
  /** Overrides the type of the row. */
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** What is left of the limits, for dialects with headers of their own for it. */
  readonly limits?: LimitsLeft | undefined;
  /** The message without any text of the caller, for `sluice explain`. Default: `when` of the row. */
  readonly keptMessage?: string;
  /** For the log only. */
  readonly cause?: unknown;
  /** For `sluice explain`, never for the caller. Without it, the row and `param` explain. */
  readonly explanation?: RefusalExplanation;
}

export interface LimitsLeft {
  readonly state: LimitState;
  /** Wall clock. */
  readonly nowMs: number;
  /** Set when a call fits again only then. */
  readonly freeAtMs?: number;
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
  readonly keptMessage: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly limits: LimitsLeft | undefined;
  readonly explanation: RefusalExplanation | undefined;

  constructor(name: GatewayErrorName, details: GatewayErrorDetails) {
    super(details.message, { cause: details.cause });
    this.rowName = name;
    this.row = rows[name];
    this.param = details.param ?? null;
    this.type = details.type ?? this.row.type;
    this.keptMessage = details.keptMessage ?? this.row.when;
    this.headers = details.headers ?? {};
    this.limits = details.limits;
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

/** Spread, so that refused callers do not all come back at once. */
const shortestRetryMs = 1_000;

const longestRetryMs = 2_000;

/** The error of a call that is shed under overload; `jitter` is from 0 to 1. */
export function overloaded(jitter: number): GatewayError {
  const retryMs = Math.round(shortestRetryMs + jitter * (longestRetryMs - shortestRetryMs));
  return new GatewayError("model_unavailable", {
    message: "The gateway is overloaded at the moment. Please retry your request.",
    headers: retryHeaders(retryMs),
    explanation: {
      rule: "overloaded",
      summary:
        "Load bound: the concurrent calls of the process are bounded, and the bound falls while " +
        "its loop is late. Spillover is refused first, then on-demand, provisioned last.",
    },
  });
}
