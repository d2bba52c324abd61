import type { GatewayError, GatewayErrorName } from "../../domain/errors/gateway-error.ts";

/** The status of an error of this dialect, and its type there. */
export interface MessagesError {
  readonly status: number;
  readonly type: string;
}

/**
 * Writes an error in Anthropic's shape. Its text begins with the path of the field at fault, as
 * `messages.0.content.1: ...`. Without an id, which errors that are made before have not, it is null;
 * the header `request-id` always has it.
 */
export function writeMessagesError(
  error: GatewayError,
  requestId: string | undefined,
): { readonly status: number; readonly body: string } {
  const { status, type } = statusOf(error);
  const details = detailed.has(error.rowName) ? { details: { error_code: error.code } } : {};
  const body = {
    type: "error",
    error: { type, message: textOf(error), ...details },
    request_id: requestId ?? null,
  };
  return { status, body: JSON.stringify(body) };
}

/** Errors whose code clients act on. */
const detailed: ReadonlySet<GatewayErrorName> = new Set(["thread_unsupported"]);

function statusOf(error: GatewayError): MessagesError {
  const { rowName, explanation, headers } = error;
  if (rowName === "invalid_model" && explanation?.rule === "model_unknown") return unknownModel;
  // What only the operator can mend is no overload, after which clients come back.
  const isLasting = headers["x-should-retry"] === "false";
  if (rowName === "model_unavailable" && isLasting) return { status: 500, type: "api_error" };
  return messagesError(rowName, error.status);
}

const unknownModel: MessagesError = { status: 404, type: "not_found_error" };

/** What a row of the table of errors is in this dialect; `status` is that of the row. */
export function messagesError(row: GatewayErrorName, status: number): MessagesError {
  const own = statuses[row] ?? status;
  if (row === "budget_exceeded") return { status: own, type: "billing_error" };
  const other = own < 500 ? "invalid_request_error" : "api_error";
  return { status: own, type: types[own] ?? other };
}

const statuses: Readonly<Partial<Record<GatewayErrorName, number>>> = {
  model_unavailable: 529,
  deadline_exceeded: 504,
};

/** Anthropic's types, by status: https://platform.claude.com/docs/en/api/errors */
const types: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  408: "timeout_error",
  409: "conflict_error",
  413: "request_too_large",
  429: "rate_limit_error",
  501: "not_supported",
  504: "timeout_error",
  529: "overloaded_error",
};

function textOf(error: GatewayError): string {
  const { message, param } = error.toBody().error;
  if (error.rowName === "context_length_exceeded") return overflowText(message);
  if (param === null || error.status !== 400) return message;
  const path = param.replaceAll(/\[(\d+)\]/g, ".$1");
  if (error.rowName === "missing_required_parameter") return `${path}: Field required`;
  // Texts of checks name the path themselves, in OpenAI's spelling.
  const named = message.indexOf(`'${param}'`);
  const after = message.slice(named + param.length + 2).replace(/^[:.] */, "");
  const isOpening = named !== -1 && /^Invalid (?:\w+ )*(?:for )?$/.test(message.slice(0, named));
  const text = isOpening && after !== "" ? after : message;
  return `${path}: ${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

/** Claude Code compacts its conversation when it reads these words. */
function overflowText(message: string): string {
  const counts = /length is (\d+) tokens\..* resulted in (?:at least )?(\d+) tokens/.exec(message);
  if (counts !== null) return `prompt is too long: ${counts[2]} tokens > ${counts[1]} maximum`;
  return /too long/i.test(message) ? message : `prompt is too long: ${message}`;
}
