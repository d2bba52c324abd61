import { GatewayError } from "../../domain/errors/gateway-error.ts";

/** Where a request goes, read without building a URL: callers write `Host` themselves. */
interface RequestTarget {
  /** Host name in lower case, without port. */
  readonly host: string;
  /** Path as sent, percent-encoding kept, without query. */
  readonly path: string;
  /** Whether a segment of the path has an encoded slash, which only names of models may have. */
  readonly hasEncodedSlash: boolean;
}

/**
 * Refuses messages and paths that the runtime accepts but a proxy in front may read differently,
 * which is how requests are smuggled. `sent` is the path as it was sent (see `ListenOptions`).
 */
export function readTarget(
  request: Request,
  maxHeaders: number,
  sent: SentPath | undefined,
): RequestTarget {
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
  const name = (match[1] ?? "").toLowerCase();
  if (sent?.frequent !== undefined) {
    return { host: name, path: sent.frequent, hasEncodedSlash: false };
  }
  const path = pathOf(request.url);
  refuseAmbiguousPath(path, sent?.segments);
  return {
    host: name,
    path,
    hasEncodedSlash: sent?.segments.some((segment) => segment.includes("/")) ?? false,
  };
}

/** The query, without a fragment, which clients must not send. */
export function queryOf(url: string): URLSearchParams {
  const [whole = ""] = url.split("#", 1);
  const start = whole.indexOf("?");
  return new URLSearchParams(start === -1 ? "" : whole.slice(start + 1));
}

/** For an encoded slash outside the name of a model. */
export function encodedSlash(): GatewayError {
  return badRequest("The path of the request has an encoded slash.");
}

/** A proxy may read it as sent; the runtime resolves dots, turns backslashes, and cuts at a `#`. */
function refuseAmbiguousPath(path: string, segments: readonly string[] | undefined): void {
  if (segments === undefined) {
    if (path !== "/") throw badRequest("The path has an empty segment, or too many segments.");
    return;
  }
  if (path.includes("//")) throw badRequest("The path of the request has an empty segment.");
  for (const segment of segments) {
    if (segment === "." || segment === "..") {
      throw badRequest("The path of the request has a segment of dots.");
    }
    if (segment.includes("\\")) throw badRequest("The path of the request has a backslash.");
    if (segment.includes("#")) throw badRequest("The path of the request has a '#'.");
  }
  if (encodedDot.test(path)) throw badRequest("The path of the request has an encoded dot.");
}

const encodedDot = /%2e/i;

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

/** The path without query and fragment. */
export function pathOf(url: string): string {
  const scheme = url.indexOf("://");
  const start = scheme === -1 ? 0 : url.indexOf("/", scheme + 3);
  if (start === -1) return "/";
  const end = url.search(pathEnd);
  return url.slice(start, end === -1 ? url.length : end);
}

const pathEnd = /[?#]/;

function badRequest(message: string): GatewayError {
  return new GatewayError("bad_http_request", { message, headers: { connection: "close" } });
}

/** The path of a request as it was sent; see `ListenOptions`. */
export interface SentPath {
  readonly segments: readonly string[];
  /** Set for frequent paths, so that the request's URL does not have to be parsed. */
  readonly frequent?: string;
}

export type HandleSent = (
  request: Request,
  sent: SentPath | undefined,
) => Response | Promise<Response>;

type Handle = (request: Request) => Response | Promise<Response>;

/** More segments than any route has. */
const mostSegments = 12;

/**
 * The runtime (Bun 1.4) matches its routes against the path as it was sent, and normalises only
 * `request.url`. A route for each number of segments, with and without a trailing slash, therefore
 * reveals the original segments. Frequent `paths` have their own routes, which is faster.
 */
export function segmentRoutes(
  paths: readonly string[],
  handle: HandleSent,
): Record<string, Handle> {
  const routes: Record<string, Handle> = {};
  let shape = "";
  for (let count = 1; count <= mostSegments; count += 1) {
    shape += `/:s${count}`;
    for (const path of [shape, `${shape}/`]) {
      routes[path] = (request) => handle(request, parametersOf(request));
    }
  }
  for (const path of paths) {
    const sent = { segments: path.slice(1).split("/"), frequent: path };
    routes[path] = (request) => handle(request, sent);
  }
  return routes;
}

/** The values are already decoded by the runtime. */
function parametersOf(request: Request): SentPath | undefined {
  if (!("params" in request) || typeof request.params !== "object") return undefined;
  return { segments: Object.values(request.params ?? {}).map(String) };
}
