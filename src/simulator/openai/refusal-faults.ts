import { jsonReply, type Reply } from "../frame.ts";
import type { Fault, FaultMode } from "../faults/fault-mode.ts";
import { contextExceeded, errorText, invalidRequest, WireError, wrongKey } from "./wire-error.ts";

const page =
  "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n" +
  "<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n";

/** The answer of the faults that refuse a call outright; undefined for the others. */
export function refusalReply({ mode, argument }: Fault, model: string): Reply | undefined {
  const error = refusalErrors[mode]?.(model, argument);
  return error === undefined ? oddReplies[mode]?.() : errorReply(error);
}

export function errorReply(error: WireError): Reply {
  return jsonReply(errorText(error.body), { status: error.status, headers: error.headers });
}

export function serverError(status: 500 | 503): WireError {
  const message =
    status === 500
      ? "The server had an error while processing your request. Sorry about that!"
      : "The engine is currently overloaded, please try again later";
  return new WireError(status, { message, type: "server_error" });
}

const oddReplies: Readonly<Partial<Record<FaultMode, () => Reply>>> = {
  "html-502": () => jsonReply(page, { status: 502, headers: { "content-type": "text/html" } }),
  "non-sse-200": () => jsonReply(page, { headers: { "content-type": "text/html; charset=utf-8" } }),
  redirect: () => jsonReply("", { status: 307, headers: { location: "/redirected" } }),
  "error-200": () => ({ ...errorReply(serverError(500)), status: 200 }),
};

type RefusalError = (model: string, argument: number | undefined) => WireError;

const refusalErrors: Readonly<Partial<Record<FaultMode, RefusalError>>> = {
  "throttle-429": (model, waitMs = 2000) => throttled(model, waitMs),
  "throttle-429-bare": (model) => throttled(model, undefined),
  "error-500": () => serverError(500),
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
