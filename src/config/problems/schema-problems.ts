import type { z } from "zod";
import { configInputSchema, isSchema, type JsonSchema } from "../json-schema.ts";
import { withSuggestion, type ConfigPath, type SettingProblem } from "../../settings/problem.ts";
import { suggest } from "../../domain/suggest.ts";
import type { UpstreamKind } from "../../upstreams/kind.ts";
import { isObject } from "../../domain/json-object.ts";

/** Violations of the schema, with suggestions for misspelt keys and choices. */
export function schemaProblems(
  issues: readonly z.core.$ZodIssue[],
  tree: unknown,
  kinds: readonly UpstreamKind[],
): readonly SettingProblem[] {
  const schema = configInputSchema(kinds);
  return issues.flatMap((issue): readonly SettingProblem[] => {
    const path = issue.path.map((step) => (typeof step === "number" ? step : String(step)));
    const { message } = issue;
    if (issue.code === "unrecognized_keys") {
      const known = knownKeys(schema, path, tree);
      return issue.keys.map((key) => unknownKey([...path, key], suggest(key, known)));
    }
    if (issue.code === "invalid_value") {
      return [withSuggestion({ path, message }, nearest(issue.values, tree, path))];
    }
    if (issue.code === "invalid_union" && "options" in issue) {
      return [withSuggestion({ path, message }, nearest(issue.options, tree, path))];
    }
    return [{ path, message }];
  });
}

/** Texts for issues without a text in the schema. They never quote a value. */
export function describeIssue(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code === "invalid_type") return describeType(issue.expected, issue.input);
  if (issue.code === "too_small") {
    return `must ${describeSize(issue.origin, `at least ${issue.minimum}`)}`;
  }
  if (issue.code === "too_big") {
    return `must ${describeSize(issue.origin, `at most ${issue.maximum}`)}`;
  }
  if (issue.code === "invalid_value") return describeChoices(issue.values);
  if (issue.code === "invalid_key") return issue.issues.map(({ message }) => message).join("; ");
  if (issue.code === "invalid_union") return describeChoices(issue["options"]);
  return undefined;
}

function describeType(expected: string, input: unknown): string {
  if (input === undefined) return "is required";
  if (input === null) return "is empty; give it a value or remove it";
  switch (expected) {
    case "string":
      return typeof input === "object" ? "must be text" : "must be text; put the value in quotes";
    case "boolean":
      return "must be true or false (on, off, yes and no are text)";
    case "array":
      return "must be a list";
    case "object":
    case "record":
      return "must be a map of keys and values";
    default:
      return "must be a whole number";
  }
}

function describeSize(origin: string, bound: string): string {
  switch (origin) {
    case "string":
      return `have ${bound} characters`;
    case "array":
      return `have ${bound} ${bound.endsWith(" 1") ? "item" : "items"}`;
    default:
      return `be ${bound}`;
  }
}

function describeChoices(choices: unknown): string | undefined {
  return Array.isArray(choices) ? `must be one of: ${choices.map(String).join(", ")}` : undefined;
}

function unknownKey(path: ConfigPath, suggestion: string | undefined): SettingProblem {
  const isGlued = String(path.at(-1)).includes(":");
  const message = isGlued ? "unknown key; write a space after its colon" : "unknown key";
  return withSuggestion({ path, message }, suggestion);
}

function nearest(choices: unknown, tree: unknown, path: ConfigPath): string | undefined {
  const written = valueAt(tree, path);
  if (typeof written !== "string" || !Array.isArray(choices)) return undefined;
  return suggest(
    written,
    choices.filter((choice) => typeof choice === "string"),
  );
}

function valueAt(tree: unknown, path: ConfigPath): unknown {
  let value = tree;
  for (const step of path) {
    if (Array.isArray(value) && typeof step === "number") value = value[step];
    else if (isObject(value) && Object.hasOwn(value, step)) value = value[step];
    else return undefined;
  }
  return value;
}

/** Keys that the map at a path may have. */
function knownKeys(schema: JsonSchema, path: ConfigPath, tree: unknown): readonly string[] {
  let part: JsonSchema | undefined = schema;
  for (const [index, step] of path.entries()) {
    part = child(variant(part, valueAt(tree, path.slice(0, index))), step);
  }
  return Object.keys(variant(part, valueAt(tree, path))?.properties ?? {});
}

function child(schema: JsonSchema | undefined, step: string | number): JsonSchema | undefined {
  const { properties, additionalProperties, items } = schema ?? {};
  const part = typeof step === "number" ? items : (properties?.[step] ?? additionalProperties);
  return isSchema(part) ? part : undefined;
}

/** The form of a union that a constant, such as `kind`, selects. */
function variant(schema: JsonSchema | undefined, value: unknown): JsonSchema | undefined {
  if (schema?.oneOf === undefined) return schema;
  return schema.oneOf.find((form) =>
    Object.entries(form.properties ?? {}).some(
      ([key, property]) =>
        isSchema(property) &&
        property.const !== undefined &&
        isObject(value) &&
        value[key] === property.const,
    ),
  );
}
