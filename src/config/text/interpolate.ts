import type { ConfigPath } from "../../settings/values.ts";
import { isObject } from "../../domain/json-object.ts";

export interface InterpolationProblem {
  readonly path: ConfigPath;
  readonly message: string;
}

interface Interpolated {
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

/** `${NAME}`, `${NAME:-text}` and the escape `$${`. */
const placeholderPattern = /\$\$\{|\$\{([^}]*)(\}?)/g;
/** A whole value in the form of LiteLLM, or of a shell. */
const foreignPlaceholder = /^(?:os\.environ\/(\w+)|\$([A-Z][A-Z0-9_]*))$/;
const contentPattern = /^([A-Za-z_][A-Za-z0-9_]*)(?::-([\s\S]*))?$/;

export type Environment = Readonly<Record<string, string | undefined>>;

interface ExpandedText {
  readonly text: string;
  /** Problems of the placeholders, with names of variables but never with values. */
  readonly problems: readonly string[];
}

/** Replaces placeholders by values of the environment. Values are not expanded again. */
export function expandPlaceholders(text: string, environment: Environment): ExpandedText {
  const foreign = foreignPlaceholder.exec(text);
  if (foreign !== null) {
    const name = foreign[1] ?? foreign[2] ?? "";
    return { text, problems: [`is not replaced in this form: write $\{${name}} for the variable`] };
  }
  if (!text.includes("${")) return { text, problems: [] };
  const problems: string[] = [];
  const expanded = text.replaceAll(
    placeholderPattern,
    (found: string, content: string | undefined, end: string | undefined) => {
      if (content === undefined) return "${";
      const [, name, fallback] = contentPattern.exec(content) ?? [];
      if (name === undefined || end !== "}") {
        problems.push(
          "has a malformed placeholder: write ${NAME}, ${NAME:-text}, or $${ for a plain ${",
        );
        return found;
      }
      const value = Object.hasOwn(environment, name) ? environment[name] : undefined;
      if (fallback !== undefined) return value === undefined || value === "" ? fallback : value;
      if (value === undefined) problems.push(`environment variable ${name} is not set`);
      return value ?? found;
    },
  );
  return { text: expanded, problems };
}

/**
 * YAML would parse the braces of an unquoted `{ key: ${NAME} }`. Other characters of the same
 * length replace them during parsing, so positions stay.
 */
export function hidePlaceholders(text: string) {
  const open = "\uE000";
  const close = "\uE001";
  if (text.includes(open) || text.includes(close)) return { text, restore: (part: string) => part };
  return {
    text: text.replaceAll(/\$\{([A-Za-z_][A-Za-z0-9_]*(?::-[^{}\n]*)?)\}/g, `$$${open}$1${close}`),
    restore: (part: string) => part.replaceAll(open, "{").replaceAll(close, "}"),
  };
}
