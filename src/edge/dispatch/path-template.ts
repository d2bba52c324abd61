import type { Route } from "./route.ts";

export type PathParameters = Readonly<Record<string, string>>;

/** Paths with parameters, such as `/keys/{id}/rotate`. A parameter is one whole segment. */
export class PathTemplate {
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
export function decodeSegment(segment: string): string | undefined {
  if (segment === "") return undefined;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
