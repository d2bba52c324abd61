import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { otherApiAdvice } from "./other-apis.ts";
import type { Route } from "../dispatch/route.ts";

export interface UnknownUrl {
  readonly method: string;
  readonly path: string;
  readonly listener: "data" | "admin";
  /** All routes of the listener. */
  readonly routes: readonly Route[];
}

export function unknownUrl({ method, path, listener, routes }: UnknownUrl): GatewayError {
  const hint = listener === "admin" ? adminHint : dataHint(path, routes);
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

function dataHint(path: string, routes: readonly Route[]): string {
  const endpoints = routes.filter(({ path: own }) => /^\/v1\/[^*]+$/.test(own));
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
