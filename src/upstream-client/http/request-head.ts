import type { TransportRequest } from "../transport.ts";
import type { Address } from "./address.ts";

/** Headers of the connection, which are the client's own. */
const ownHeaders: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** In lower case, as the names above are compared. */
const validName = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
const invalidValue = /[^\t\x20-\x7e]/;
const invalidTarget = /[^\x21-\x7e]/;

/** The head of a request: ASCII only. Throws `ClientError` for invalid parts. */
export function writeRequestHead(
  { method, headers }: TransportRequest,
  address: Address,
  bodyBytes: number,
): string {
  let { written } = address;
  if (written?.headers !== headers || written.method !== method) {
    written = { method, headers, text: writeFields(method, headers, address) };
    address.written = written;
  }
  return `${written.text}content-length: ${bodyBytes}\r\n\r\n`;
}

function writeFields(
  method: string,
  headers: TransportRequest["headers"],
  { host, target, origin: { proxy, isSecure } }: Address,
): string {
  if (invalidTarget.test(target)) throw new ClientError("InvalidRequest", "connecting");
  let head = `${method} ${target} HTTP/1.1\r\nhost: ${host}\r\n`;
  let hasAgent = false;
  let hasAccept = false;
  for (const name in headers) {
    const value = headers[name] ?? "";
    if (!validName.test(name) || invalidValue.test(value)) {
      throw new ClientError("InvalidRequest", "connecting");
    }
    if (name === "user-agent") hasAgent = true;
    else if (name === "accept") hasAccept = true;
    else if (ownHeaders.has(name)) continue;
    head += `${name}: ${value}\r\n`;
  }
  // Some services refuse requests without an agent.
  if (!hasAgent) head += "user-agent: sluice\r\n";
  if (!hasAccept) head += "accept: */*\r\n";
  if (!isSecure && proxy?.authorization !== undefined) {
    head += `proxy-authorization: ${proxy.authorization}\r\n`;
  }
  return head;
}

/** How far a request came before its connection failed. */
export type FailedStage =
  /** No connection could be opened, so nothing was sent. */
  | "connecting"
  /** Sent, but no byte of an answer arrived: the server may have processed it. */
  | "unanswered"
  /** The answer had begun. */
  | "answering";

/** The connection of a request failed, or its answer violates HTTP. */
export class ClientError extends Error {
  override readonly name = "ClientError";
  /** A code of the runtime, such as `ECONNREFUSED`, or of the client. */
  readonly code: string;
  readonly stage: FailedStage;

  constructor(code: string, stage: FailedStage, options?: ErrorOptions) {
    super(code, options);
    this.code = code;
    this.stage = stage;
  }
}
