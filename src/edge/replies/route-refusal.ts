import { GatewayError } from "../../domain/errors/gateway-error.ts";
import otherApis from "./other-apis.json" with { type: "json" };
import type { Route } from "../dispatch/route.ts";
import type { CredentialForm } from "../../domain/keys/api-key.ts";
import { retryHeaders } from "../../domain/limits/headers.ts";

interface UnknownUrl {
  readonly method: string;
  readonly path: string;
  readonly listener: "data" | "admin";
  /** All routes of the listener. */
  readonly routes: readonly Route[];
}

export function unknownUrl({ method, path, listener, routes }: UnknownUrl): GatewayError {
  const hint = listener === "admin" ? adminHint : `${dataHint(path, routes)} ${setUps}`;
  return new GatewayError("unknown_url", {
    message: `Unknown request URL: ${method} ${path.slice(0, 200)}. ${hint}`,
  });
}

export function wrongMethod(
  method: string,
  path: string,
  allowed: readonly string[],
): GatewayError {
  return new GatewayError("method_not_allowed", {
    message:
      `Not allowed to ${method} on ${path.slice(0, 200)}. ` +
      "(HINT: Perhaps you meant to use a different HTTP method?)",
    headers: { allow: allowed.join(", ") },
  });
}

const adminHint =
  "Please check the URL for typos; this is the admin API, and GET /admin/v1/docs describes it.";

const setUps = "Sluice's docs/clients.md has set-ups for clients.";

function dataHint(path: string, routes: readonly Route[]): string {
  const endpoints = routes.filter((own) => !own.isUnlisted && /^\/v1\/[^*]+$/.test(own.path));
  const tails = endpoints.map((route) => ({ ...route, tail: route.path.replace("/v1", "") }));
  const posts = tails.flatMap(({ method, tail }) => (method === "POST" ? tail : []));
  const firsts = tails.map(({ tail }) => tail.split("/")[1]);
  const doubled = new RegExp(`^(.*?)(${posts.join("|")})/+(?:v1/+)?(?:${firsts.join("|")})`).exec(
    path,
  );
  if (doubled !== null) {
    return `The base URL must end before '${doubled[2]}': clients add that part themselves.`;
  }
  const advice = otherApiAdvice(path);
  if (advice !== undefined) return advice;
  const names = endpoints.map((route) => `${route.method} ${route.path}`);
  const list = `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
  return `Please check the URL for typos; the endpoints are ${list}.`;
}

/** APIs that clients may ask for and that are not served. */
const advices = otherApis.map(({ path, advice }) => ({ pattern: new RegExp(path), advice }));

/** What to do instead, for a path of another API, without `/v1`. */
function otherApiAdvice(path: string): string | undefined {
  const plain = path.replace(/^\/v1(?=\/)/, "").replace(/(?<=.)\/$/, "");
  return advices.find(({ pattern }) => pattern.test(plain))?.advice;
}

export function draining(): GatewayError {
  return new GatewayError("model_unavailable", {
    message: "This instance of the gateway is shutting down. Please retry your request.",
    headers: { ...retryHeaders(1_000), connection: "close" },
    explanation: {
      rule: "draining",
      summary: "The process is shutting down and finishes only open requests.",
    },
  });
}

export function unknownHost(host: string): GatewayError {
  return new GatewayError("unknown_url", {
    message: `No environment answers at host '${host}'. Please check the host of your base URL.`,
  });
}

/** Names no details of the key: one prepared answer serves all wrong keys of an address. */
export function repeatedlyWrongKey({ header }: CredentialForm): GatewayError {
  return new GatewayError("invalid_api_key", {
    message:
      "Incorrect API key provided. Your network address sends many requests with wrong keys. Send " +
      `the key of your application for this environment in the ${header}.`,
  });
}

/** Whether the error only results from the caller's disconnect. */
export function hasLeft({ signal }: Request, thrown: unknown): boolean {
  if (!signal.aborted || !(thrown instanceof Error)) return false;
  return thrown === signal.reason || thrown.name === "AbortError";
}
