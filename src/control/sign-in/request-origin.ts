import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { isLoopback } from "../../domain/network.ts";

const safeMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

export function isUnsafe(request: Request): boolean {
  return !safeMethods.has(request.method);
}

/**
 * Refuses requests of a browser from a page of another origin (403). Scripts send none of these
 * headers and pass.
 */
export function checkOrigin(request: Request, publicUrl: string): void {
  const origin = request.headers.get("origin");
  if (origin !== null && !isSameOrigin(origin, publicUrl)) throw wrongOrigin(origin, publicUrl);
  const site = request.headers.get("sec-fetch-site");
  const isForeign = site !== null && site !== "same-origin" && site !== "none";
  // Links from other sites may open pages, but must not change anything.
  if (isForeign && isUnsafe(request)) throw wrongOrigin(origin ?? site, publicUrl);
}

/** For changes with a cookie, for which browsers always send an origin. */
export function requireOrigin(request: Request, publicUrl: string): void {
  if (!request.headers.has("origin")) throw noOrigin(publicUrl);
}

/** All loopback names are the same origin. */
function isSameOrigin(from: string, publicUrl: string): boolean {
  const page = URL.parse(from);
  const own = URL.parse(publicUrl);
  if (page === null || own === null) return false;
  if (page.origin === own.origin) return true;
  const isOwnMachine = isLoopback(page.hostname) && isLoopback(own.hostname);
  return isOwnMachine && page.protocol === own.protocol && page.port === own.port;
}

/** For scripts that use a session's cookie. */
function noOrigin(publicUrl: string): GatewayError {
  const origin = URL.parse(publicUrl)?.origin ?? publicUrl;
  return new GatewayError("wrong_origin", {
    message:
      `A change with a session cookie needs the header \`origin: ${origin}\`. Scripts should ` +
      "use a management token, which does not.",
  });
}

function wrongOrigin(from: string, publicUrl: string): GatewayError {
  return new GatewayError("wrong_origin", {
    message:
      `The request comes from '${from.slice(0, 200)}', but the control plane accepts only ` +
      `pages of ${publicUrl}. Open the console at that address, or set admin.public_url.`,
  });
}
