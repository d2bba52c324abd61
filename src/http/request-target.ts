import { GatewayError } from "../domain/gateway-error.ts";

/** Where a request goes, read without building a URL: `Host` is the caller's text. */
export interface RequestTarget {
  /** Host name in lower case, without port. */
  readonly host: string;
  /** Path as sent, percent-encoding kept, without query and fragment. */
  readonly path: string;
}

/**
 * Refuses what the runtime's HTTP parser lets through and must not reach a handler: ambiguous
 * messages are how requests are smuggled past a proxy in front.
 */
export function readTarget(request: Request, maxHeaders: number): RequestTarget {
  const { headers } = request;
  if (headers.count > maxHeaders) {
    throw new GatewayError("headers_too_large", {
      message: `Too many headers: at most ${maxHeaders} are accepted, but ${headers.count} were sent.`,
    });
  }
  const host = headers.get("host");
  const match = host === null ? null : hostPattern.exec(host);
  if (match === null) throw badRequest("The request needs exactly one valid Host header.");
  refuseRepeated(headers, "authorization");
  refuseRepeated(headers, "content-length");
  if (request.method === "GET" || request.method === "HEAD") refuseBody(request);
  return { host: (match[1] ?? "").toLowerCase(), path: pathOf(request.url) };
}

/** What stands behind the path; of the fragment a client must not send, nothing. */
export function queryOf(url: string): URLSearchParams {
  const [whole = ""] = url.split("#", 1);
  const start = whole.indexOf("?");
  return new URLSearchParams(start === -1 ? "" : whole.slice(start + 1));
}

/** A name, an IPv4 or a bracketed IPv6 address, with an optional port. */
const hostPattern = /^([A-Za-z0-9_.-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?$/;

function refuseRepeated(headers: Headers, name: string): void {
  // The runtime joins repeated headers with a comma, which neither value may contain.
  if (headers.get(name)?.includes(",") === true) {
    throw badRequest(`The request has more than one ${name} header.`);
  }
}

function refuseBody(request: Request): void {
  const length = request.headers.get("content-length");
  if ((length !== null && length !== "0") || request.headers.has("transfer-encoding")) {
    throw badRequest(`A ${request.method} request must not have a body.`);
  }
}

function pathOf(url: string): string {
  const scheme = url.indexOf("://");
  const start = scheme === -1 ? 0 : url.indexOf("/", scheme + 3);
  if (start === -1) return "/";
  let end = url.indexOf("?", start);
  if (end === -1) end = url.length;
  const fragment = url.indexOf("#", start);
  return url.slice(start, fragment === -1 ? end : Math.min(end, fragment));
}

function badRequest(message: string): GatewayError {
  return new GatewayError("bad_http_request", { message, headers: { connection: "close" } });
}
