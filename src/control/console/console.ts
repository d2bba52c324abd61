import { gunzipSync } from "node:zlib";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Clock } from "../../domain/clock.ts";
import type { PublicCall, Route } from "../../edge/dispatch/route.ts";
import type { Reply } from "../../edge/replies/error-reply.ts";
import { consoleFiles, type ReadConsoleFile } from "./console-files.ts";

/**
 * First parts of the paths of pages. The console knows what is below them; a page that it does not
 * have says so itself.
 */
export const consoleSections = [
  "keys",
  "models",
  "playground",
  "usage",
  "calls",
  "budgets",
  "targets",
  "pools",
  "gateways",
  "accounts",
  "prices",
  "users",
  "configuration",
  "audit",
  "access",
  "welcome",
] as const;

/** Only the console's own files run, and no request leaves its origin. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "connect-src 'self'",
  "font-src 'self'",
  "manifest-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

const pageHeaders = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": contentSecurityPolicy,
  "cross-origin-opener-policy": "same-origin",
  "permissions-policy":
    "camera=(), clipboard-write=(self), display-capture=(), geolocation=(), microphone=(), " +
    "payment=(), usb=()",
  // The theme is in the page.
  vary: "accept-encoding, cookie",
  "cache-control": "no-cache",
};

/** Browsers ask for it by a name that never changes. */
const icon = "icon.svg";

const types: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
};

/** The web console: a page for each of its paths, and the files that the page loads. */
export function consoleRoutes(dataDir: string, clock: Pick<Clock, "monotonic">): readonly Route[] {
  const files = consoleFiles(dataDir, clock);
  const page = async (call: PublicCall): Promise<Reply> =>
    pageReply(await files(), call.request.headers);
  const asset = async ({ request }: PublicCall, name: string): Promise<Reply> =>
    assetReply(await files(), name, request.headers);
  const route = { method: "GET", access: "public" } as const;
  return [
    { ...route, path: "/", handle: page },
    ...consoleSections.flatMap((name) => [
      { ...route, path: `/${name}`, handle: page },
      { ...route, path: `/${name}/*`, handle: page },
    ]),
    { ...route, path: "/assets/*", handle: (call: PublicCall) => asset(call, call.parameter) },
    { ...route, path: "/favicon.ico", handle: (call: PublicCall) => asset(call, icon) },
  ];
}

async function pageReply(read: ReadConsoleFile, sent: Headers): Promise<Reply> {
  const cookies = sent.get("cookie") ?? "";
  const [, theme = "system"] = /(?:^|;\s*)sluice_theme=(light|dark)(?:;|$)/.exec(cookies) ?? [];
  const found = await encoded(read, `${theme}.html`, sent);
  if (found === undefined) throw new Error("the console was built without its page");
  const etag = `"${Bun.hash(found.body).toString(36)}"`;
  const headers = { ...pageHeaders, ...found.headers, etag };
  return sent.get("if-none-match") === etag
    ? { status: 304, headers, body: null }
    : { status: 200, headers, body: found.body };
}

async function assetReply(read: ReadConsoleFile, name: string, sent: Headers): Promise<Reply> {
  const found = /^[\w.-]+$/.test(name) ? await encoded(read, name, sent) : undefined;
  if (found === undefined) {
    throw new GatewayError("unknown_url", {
      message: `The console has no file '${name.slice(0, 100)}'. Load its page again.`,
    });
  }
  const headers = {
    ...found.headers,
    "content-type": types[name.split(".").at(-1) ?? ""] ?? "application/octet-stream",
    // Names of others change with their content.
    "cache-control": name === icon ? "no-cache" : "public, max-age=31536000, immutable",
    vary: "accept-encoding",
  };
  return { status: 200, headers, body: found.body };
}

/** The file in the best form that the browser takes. */
async function encoded(read: ReadConsoleFile, name: string, sent: Headers) {
  const accepted = sent.get("accept-encoding") ?? "";
  if (/\bbr\b/.test(accepted)) {
    const body = await read(`${name}.br`);
    return body && { body, headers: { "content-encoding": "br" } };
  }
  const body = await read(`${name}.gz`);
  if (body === undefined) return undefined;
  if (/\bgzip\b/.test(accepted)) return { body, headers: { "content-encoding": "gzip" } };
  return { body: new Uint8Array(gunzipSync(body)), headers: {} };
}
