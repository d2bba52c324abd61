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

/** Finds the route of a path: exact ones first, then those with the earliest literal segments. */
export class RouteTable {
  readonly listener: ListenerKind;
  readonly routes: readonly Route[];
  readonly #exact = new Map<string, Shape>();
  /** Those with parameters. */
  readonly #others: readonly Shape[];

  constructor(routes: readonly Route[], listener: ListenerKind = "data") {
    this.listener = listener;
    this.routes = routes;
    const others = new Map<string, Shape>();
    for (const route of routes) {
      const path = this.#canonical(route.path);
      // Both are behind every character of a literal segment.
      const order = path.replace(parameter, "~").replace("*", "~~");
      const shapes = order === path ? this.#exact : others;
      const shape = shapes.get(order) ?? {
        order,
        pattern: patternOf(path),
        routes: [],
        values: [],
      };
      if (shape.routes.some(({ method }) => method === route.method)) {
        throw new Error(`two routes take ${route.method} ${route.path}`);
      }
      shape.routes.push(route);
      shapes.set(order, shape);
    }
    this.#others = [...others.values()].toSorted((one, other) =>
      one.order < other.order ? -1 : 1,
    );
  }

  /** Throws 404 for an unknown path and 405, with `allow`, for a known path's other method. */
  match(method: string, path: string): RouteMatch {
    const { routes, values } = this.#find(path);
    if (routes.length === 0) {
      throw unknownUrl({ method, path, listener: this.listener, routes: this.routes });
    }
    const wanted = method === "HEAD" ? "GET" : method;
    const route = routes.find((candidate) => candidate.method === wanted);
    if (route === undefined) throw wrongMethod(method, path, methodsOf(routes));
    if (values.length === 0) return { route, parameter: "", parameters: noParameters };
    const names = [...route.path.matchAll(parameter)].map(([name]) => name.slice(1, -1));
    const parameters = Object.fromEntries(names.map((name, index) => [name, values[index] ?? ""]));
    return { route, parameter: names.length === 0 ? (values[0] ?? "") : "", parameters };
  }

  /** The dialect of the routes at a path; undefined when none there takes a key. */
  dialectAt(path: string): Dialect | undefined {
    const [route] = this.#find(path).routes;
    return route?.access === "key" ? route.dialect : undefined;
  }

  get plainPaths(): readonly string[] {
    return this.routes.map(({ path }) => path).filter((path) => !/[{*]/.test(path));
  }

  /** Whether the path ends in a parameter that may have slashes. */
  takesSlash(path: string): boolean {
    return this.#find(path).routes[0]?.path.endsWith("*") === true;
  }

  /** Methods for an answer to OPTIONS; empty for an unknown path. */
  methods(path: string): readonly string[] {
    return methodsOf(this.#find(path).routes);
  }

  #find(path: string): Pick<Shape, "routes" | "values"> {
    const wanted = this.#canonical(path);
    const exact = this.#exact.get(wanted);
    if (exact !== undefined) return exact;
    for (const { pattern, routes } of this.#others) {
      const values = pattern.exec(wanted)?.slice(1).map(decoded);
      if (values?.every((value) => value !== undefined) === true) return { routes, values };
    }
    return nothing;
  }

  #canonical(path: string): string {
    return this.listener === "data" ? withoutVersion(path) : withoutSlashesBehind(path, 0);
  }
}

/** Routes whose paths differ by the names of their parameters alone. */
interface Shape {
  readonly order: string;
  readonly pattern: RegExp;
  readonly routes: Route[];
  /** Those of the parameters in a path, percent-decoded. */
  readonly values: readonly string[];
}

const nothing = { routes: [], values: [] };
const noParameters: PathParameters = {};

const parameter = /\{\w+\}/g;

/** The literal segments have no character with another meaning in a pattern. */
function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replace(parameter, "([^/]+)").replace("*", "(.+)")}$`);
}

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

/** Undefined for broken percent-encoding. */
function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
