import type { TransportRequest } from "../transport.ts";
import type { Address } from "./address.ts";
import { ClientError } from "./client-error.ts";

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
  { host, target, origin: { proxy, isSecure } }: Address,
  bodyBytes: number,
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
  return `${head}content-length: ${bodyBytes}\r\n\r\n`;
}
