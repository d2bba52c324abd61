import type { Dialect } from "../replies/error-reply.ts";
import type { Route } from "./route.ts";
import { unknownUrl, wrongMethod } from "../replies/route-refusal.ts";

export interface RouteMatch {
  readonly route: Route;
  /** The value of a trailing `*`, or an empty text. */
  readonly parameter: string;
  /** By the names in the braces of the route's path. */
  readonly parameters: PathParameters;
}

/** On `data`, variants of base URLs are accepted: without or with a doubled `/v1`. */
type ListenerKind = "data" | "admin";

/** Finds the route of a path: exact ones first, then prefixes, then templates. */
export class RouteTable {
  readonly listener: ListenerKind;
  readonly routes: readonly Route[];
  readonly #exact = new Map<string, ExactRoutes>();
  readonly #prefixes: { readonly prefix: string; readonly routes: Route[] }[] = [];
  readonly #templates: PathTemplate[] = [];

  constructor(routes: readonly Route[], listener: ListenerKind = "data") {
    this.listener = listener;
    this.routes = routes;
    for (const route of routes) this.#add(route);
    this.#templates.sort((one, other) => (one.order < other.order ? -1 : 1));
  }

  /** Throws 404 for an unknown path and 405, with `allow`, for a known path's other method. */
  match(method: string, path: string): RouteMatch {
    const found = this.#find(path);
    if (found.routes.length === 0) {
      throw unknownUrl({ method, path, listener: this.listener, routes: this.routes });
    }
    const wanted = method === "HEAD" ? "GET" : method;
    const route = found.routes.find((candidate) => candidate.method === wanted);
    if (route === undefined) throw wrongMethod(method, path, methodsOf(found.routes));
    const parameters = found.template?.parameters(route.path, found.values) ?? noParameters;
    return { route, parameter: found.parameter, parameters };
  }

  /** The dialect of the routes at a path; undefined when none there takes a key. */
  dialectAt(path: string): Dialect | undefined {
    const [route] = this.#find(path).routes;
    return route?.access === "key" ? route.dialect : undefined;
  }

  /** The paths without parameters. */
  get plainPaths(): readonly string[] {
    return this.routes.map(({ path }) => path).filter((path) => !/[{*]/.test(path));
  }

  /** Whether the path ends in a parameter that may have slashes. */
  takesSlash(path: string): boolean {
    return this.#find(path).parameter !== "";
  }

  /** Methods for an answer to OPTIONS; empty for an unknown path. */
  methods(path: string): readonly string[] {
    return methodsOf(this.#find(path).routes);
  }

  #add(route: Route): void {
    const sameShape = this.#routesLike(route);
    if (sameShape.some(({ method }) => method === route.method)) {
      throw new Error(`two routes take ${route.method} ${route.path}`);
    }
    sameShape.push(route);
  }

  /** The routes that differ from this one by the method alone. */
  #routesLike({ path }: Route): Route[] {
    if (path.includes("{")) return this.#templateOf(this.#canonical(path)).routes;
    if (path.endsWith("*")) return this.#prefixOf(this.#canonical(path.slice(0, -1)));
    const exact = this.#canonical(path);
    const known = this.#exact.get(exact) ?? { ...nothing, routes: [] };
    this.#exact.set(exact, known);
    return known.routes;
  }

  #prefixOf(prefix: string): Route[] {
    const known = this.#prefixes.find((entry) => entry.prefix === prefix);
    if (known !== undefined) return known.routes;
    const routes: Route[] = [];
    this.#prefixes.push({ prefix, routes });
    return routes;
  }

  #templateOf(path: string): PathTemplate {
    const template = new PathTemplate(path);
    const known = this.#templates.find(({ order }) => order === template.order);
    if (known === undefined) this.#templates.push(template);
    return known ?? template;
  }

  #find(path: string): FoundRoutes {
    const wanted = this.#canonical(path);
    const exact = this.#exact.get(wanted);
    if (exact !== undefined) return exact;
    for (const { prefix, routes } of this.#prefixes) {
      if (!wanted.startsWith(`${prefix}/`)) continue;
      const parameter = decodeSegment(wanted.slice(prefix.length + 1));
      if (parameter !== undefined) return { ...nothing, routes, parameter };
    }
    return this.#templates.length === 0 ? nothing : this.#findTemplate(wanted);
  }

  #findTemplate(path: string): FoundRoutes {
    const segments = path.split("/");
    for (const template of this.#templates) {
      const values = template.match(segments);
      if (values !== undefined) return { ...nothing, routes: template.routes, template, values };
    }
    return nothing;
  }

  #canonical(path: string): string {
    return this.listener === "data" ? withoutVersion(path) : withoutSlashesBehind(path, 0);
  }
}

interface FoundRoutes {
  readonly routes: readonly Route[];
  readonly parameter: string;
  readonly template: PathTemplate | undefined;
  readonly values: readonly string[];
}

interface ExactRoutes extends FoundRoutes {
  readonly routes: Route[];
}

const nothing: FoundRoutes = { routes: [], parameter: "", template: undefined, values: [] };

const noParameters: PathParameters = {};

/** Removes a leading `/v1`, also a doubled one, and trailing slashes. */
function withoutVersion(path: string): string {
  let start = 0;
  while (start < 6 && path.startsWith("/v1/", start)) start += 3;
  return withoutSlashesBehind(path, start);
}

function withoutSlashesBehind(path: string, start: number): string {
  let end = path.length;
  while (end > start + 1 && path.charCodeAt(end - 1) === 47) end -= 1;
  return start === 0 && end === path.length ? path : path.slice(start, end);
}

function methodsOf(routes: readonly Route[]): readonly string[] {
  return routes.length === 0 ? [] : [...routes.map((route) => route.method), "OPTIONS"];
}

type PathParameters = Readonly<Record<string, string>>;

/** Paths with parameters, such as `/keys/{id}/rotate`. A parameter is one whole segment. */
class PathTemplate {
  /** Routes of this shape; their parameters may have different names. */
  readonly routes: Route[] = [];
  /** The shape; of two that match a path, the smaller one has the earlier literal segment. */
  readonly order: string;
  /** Undefined for a parameter. */
  readonly #literals: readonly (string | undefined)[];

  constructor(path: string) {
    const segments = path.split("/");
    this.#literals = segments.map((segment) => (isParameter(segment) ? undefined : segment));
    // A tilde is the last printable ASCII character, and no literal segment begins with one.
    this.order = this.#literals.map((literal) => literal ?? "~").join("/");
  }

  /** Values of the parameters, percent-decoded; undefined when the path does not match. */
  match(segments: readonly string[]): readonly string[] | undefined {
    if (segments.length !== this.#literals.length) return undefined;
    const values: string[] = [];
    for (const [index, literal] of this.#literals.entries()) {
      const segment = segments[index] ?? "";
      if (literal !== undefined) {
        if (segment !== literal) return undefined;
        continue;
      }
      const value = decodeSegment(segment);
      if (value === undefined) return undefined;
      values.push(value);
    }
    return values;
  }

  /** The values by the names in the route's own path. */
  parameters(path: string, values: readonly string[]): PathParameters {
    const names = path.split("/").filter(isParameter);
    return Object.fromEntries(names.map((name, index) => [name.slice(1, -1), values[index] ?? ""]));
  }
}

function isParameter(segment: string): boolean {
  return segment.startsWith("{") && segment.endsWith("}");
}

/** Undefined for an empty segment and for broken percent-encoding. */
function decodeSegment(segment: string): string | undefined {
  if (segment === "") return undefined;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
