import { GatewayError } from "../domain/gateway-error.ts";
import type { Route } from "./route.ts";

export interface RouteMatch {
  readonly route: Route;
  readonly parameter: string;
}

/** Finds the route of a path, tolerating the variants that base URLs in the wild produce. */
export class RouteTable {
  readonly #exact = new Map<string, Route[]>();
  readonly #prefixes: { readonly prefix: string; readonly routes: Route[] }[] = [];

  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      if (route.path.endsWith("*")) this.#addPrefix(canonical(route.path.slice(0, -1)), route);
      else {
        const path = canonical(route.path);
        this.#exact.set(path, [...(this.#exact.get(path) ?? []), route]);
      }
    }
  }

  /** Throws 404 for an unknown path and 405, with `allow`, for a known path's other method. */
  match(method: string, path: string): RouteMatch {
    const { routes, parameter } = this.#find(path);
    if (routes.length === 0) throw unknownUrl(method, path);
    const wanted = method === "HEAD" ? "GET" : method;
    const route = routes.find((candidate) => candidate.method === wanted);
    if (route === undefined) throw wrongMethod(method, path, methodsOf(routes));
    return { route, parameter };
  }

  /** Methods for an answer to OPTIONS; empty when nothing has this path. */
  methods(path: string): readonly string[] {
    return methodsOf(this.#find(path).routes);
  }

  #addPrefix(prefix: string, route: Route): void {
    const known = this.#prefixes.find((entry) => entry.prefix === prefix);
    if (known === undefined) this.#prefixes.push({ prefix, routes: [route] });
    else known.routes.push(route);
  }

  #find(path: string): { readonly routes: readonly Route[]; readonly parameter: string } {
    const wanted = canonical(path);
    const exact = this.#exact.get(wanted);
    if (exact !== undefined) return { routes: exact, parameter: "" };
    for (const { prefix, routes } of this.#prefixes) {
      if (!wanted.startsWith(`${prefix}/`)) continue;
      const parameter = decode(wanted.slice(prefix.length + 1));
      if (parameter !== undefined) return { routes, parameter };
    }
    return { routes: [], parameter: "" };
  }
}

/** Without `/v1` in front (once, or twice as doubled base URLs send it) and without slashes behind. */
function canonical(path: string): string {
  let start = 0;
  while (start < 6 && path.startsWith("/v1/", start)) start += 3;
  let end = path.length;
  while (end > start + 1 && path.charCodeAt(end - 1) === 47) end -= 1;
  return start === 0 && end === path.length ? path : path.slice(start, end);
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function methodsOf(routes: readonly Route[]): readonly string[] {
  return routes.length === 0 ? [] : [...routes.map((route) => route.method), "OPTIONS"];
}

function unknownUrl(method: string, path: string): GatewayError {
  const doubled =
    /^(.*?)(\/chat\/completions|\/embeddings)\/+(?:v1\/+)?(?:chat|embeddings|models)/.exec(path);
  const hint =
    doubled === null
      ? "Please check the URL for typos; the endpoints are POST /v1/chat/completions, " +
        "POST /v1/embeddings and GET /v1/models."
      : `The base URL must end before '${doubled[2]}': clients add that part themselves.`;
  return new GatewayError("unknown_url", {
    message: `Unknown request URL: ${method} ${path.slice(0, 200)}. ${hint}`,
  });
}

function wrongMethod(method: string, path: string, allowed: readonly string[]): GatewayError {
  return new GatewayError("method_not_allowed", {
    message:
      `Not allowed to ${method} on ${path.slice(0, 200)}. ` +
      "(HINT: Perhaps you meant to use a different HTTP method?)",
    headers: { allow: allowed.join(", ") },
  });
}
