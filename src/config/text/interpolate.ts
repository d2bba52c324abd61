import { type Environment, expandPlaceholders } from "./placeholder.ts";
import type { ConfigPath } from "../../settings/problem.ts";
import { isObject } from "../../domain/json-object.ts";

export interface InterpolationProblem {
  readonly path: ConfigPath;
  readonly message: string;
}

export interface Interpolated {
  readonly value: unknown;
  readonly problems: readonly InterpolationProblem[];
}

/** Replaces `${NAME}` in every text value of a tree, but not in keys. */
export function interpolate(tree: unknown, environment: Environment): Interpolated {
  const problems: InterpolationProblem[] = [];
  const visit = (value: unknown, path: ConfigPath): unknown => {
    if (typeof value === "string") {
      const expanded = expandPlaceholders(value, environment);
      problems.push(...expanded.problems.map((message) => ({ path, message })));
      return expanded.text;
    }
    if (Array.isArray(value)) return value.map((item, index) => visit(item, [...path, index]));
    if (!isObject(value)) return value;
    // Schemas of maps ignore this key silently.
    if (Object.hasOwn(value, "__proto__")) {
      problems.push({ path: [...path, "__proto__"], message: "is not allowed as a key" });
    }
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, visit(item, [...path, key])]),
    );
  };
  return { value: visit(tree, []), problems };
}
