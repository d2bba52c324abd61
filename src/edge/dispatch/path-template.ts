import type { Route } from "./route.ts";

export type PathParameters = Readonly<Record<string, string>>;

/** Paths with names in braces, such as `/keys/{id}/rotate`. Each stands for one whole segment. */
export class PathTemplate {
  /** Routes of this shape, whatever they call the parameters. */
  readonly routes: Route[] = [];
  /** The shape itself; where two fit a path, the smaller one has a literal segment earlier. */
  readonly order: string;
  /** Undefined for a parameter. */
  readonly #literals: readonly (string | undefined)[];

  constructor(path: string) {
    const segments = path.split("/");
    this.#literals = segments.map((segment) => (isParameter(segment) ? undefined : segment));
    // No literal segment has a tilde in front, which is the last printable character.
    this.order = this.#literals.map((literal) => literal ?? "~").join("/");
  }

  /** What stands in place of the parameters, percent-decoded; undefined when the path differs. */
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

  /** The values by the names that a route of this shape gives them. */
  parameters(path: string, values: readonly string[]): PathParameters {
    const names = path.split("/").filter(isParameter);
    return Object.fromEntries(names.map((name, index) => [name.slice(1, -1), values[index] ?? ""]));
  }
}

function isParameter(segment: string): boolean {
  return segment.startsWith("{") && segment.endsWith("}");
}

/** Undefined for what names nothing: an empty segment or broken encoding. */
export function decodeSegment(segment: string): string | undefined {
  if (segment === "") return undefined;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
