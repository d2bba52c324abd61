import type { z } from "zod";
import { configInputSchema, isSchema, type JsonSchema } from "../schema.ts";
import { type ConfigPath, type SettingProblem, withSuggestion } from "../../settings/values.ts";
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
  const problems = issues.flatMap((issue): readonly SettingProblem[] => {
    const path = issue.path.map((step) => (typeof step === "number" ? step : String(step)));
    const { message } = issue;
    if (issue.code === "unrecognized_keys") {
      const known = knownKeys(schema, path, tree);
      return issue.keys.map((key) => misplacedKey([...path, key], known, schema));
    }
    if (issue.code === "invalid_value") {
      return [withSuggestion({ path, message }, nearest(issue.values, tree, path))];
    }
    if (issue.code === "invalid_union" && "options" in issue) {
      const misspelt = misspeltKey(tree, path);
      if (misspelt !== undefined) return [unknownKey(misspelt, [String(path.at(-1))])];
      const suggestion = nearest(issue.options, tree, path);
      if (suggestion !== undefined || path[0] !== "upstreams") {
        return [withSuggestion({ path, message }, suggestion)];
      }
      const choices = kinds.map(({ name, about }) => `${name} (${about})`).join(", ");
      return [{ path, message: `must be one of: ${choices}` }];
    }
    return [{ path, message }];
  });
  return problems.filter((problem) => !isSaidBy(problem, problems));
}

/**
 * Whether a missing key is explained by a key beside it: one that is misspelt, or another program's
 * name for it.
 */
function isSaidBy({ path, message }: SettingProblem, all: readonly SettingProblem[]): boolean {
  if (!message.startsWith(required)) return false;
  const parent = JSON.stringify(path.slice(0, -1));
  return all
    .filter((other) => JSON.stringify(other.path.slice(0, -1)) === parent)
    .some((other) => other.suggestion === path.at(-1) || other.message === foreignSection);
}

const required = "is required";
const unknown = "unknown key";
const foreignSection = "is LiteLLM's: `sluice import litellm FILE` converts such a file";

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
  if (input === undefined) return required;
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
      return `have ${bound} ${bound.endsWith(" 1") ? "character" : "characters"}`;
    case "array":
      return `have ${bound} ${bound.endsWith(" 1") ? "item" : "items"}`;
    default:
      return `be ${bound}`;
  }
}

function describeChoices(choices: unknown): string | undefined {
  return Array.isArray(choices) ? `must be one of: ${choices.map(String).join(", ")}` : undefined;
}

function unknownKey(path: ConfigPath, known: readonly string[]): SettingProblem {
  const key = String(path.at(-1));
  if (path.length === 1 && foreignSections.has(key)) {
    return { path, message: foreignSection };
  }
  const message = key.includes(":") ? `${unknown}; write a space after its colon` : unknown;
  const meant = foreignNames.get(key)?.find((name) => known.includes(name)) ?? suggest(key, known);
  return withSuggestion({ path, message }, meant);
}

/** A key that many sections have, such as `name`, is no hint. */
const mostPlaces = 4;

/** As `unknownKey`, and for a key at the top level where the file may have it. */
function misplacedKey(
  path: ConfigPath,
  known: readonly string[],
  schema: JsonSchema,
): SettingProblem {
  const problem = unknownKey(path, known);
  if (path.length > 1 || problem.suggestion !== undefined) return problem;
  const places = [...placesOf(String(path[0]), schema, "")];
  if (places.length === 0 || places.length > mostPlaces) return problem;
  return {
    path,
    message: `${problem.message} at the top level; it belongs at ${places.join(" or ")}`,
  };
}

/** The paths of a key, such as `upstreams.<name>.timeouts`. */
function placesOf(key: string, schema: JsonSchema, prefix: string): ReadonlySet<string> {
  const { properties = {}, additionalProperties, oneOf = [] } = schema;
  const places = new Set<string>();
  const look = (part: unknown, inner: string): void => {
    if (isSchema(part)) for (const place of placesOf(key, part, inner)) places.add(place);
  };
  for (const [name, part] of Object.entries(properties)) {
    if (name === key) places.add(prefix + name);
    look(part, `${prefix}${name}.`);
  }
  look(additionalProperties, `${prefix}<name>.`);
  for (const form of oneOf) look(form, prefix);
  return places;
}

const foreignSections: ReadonlySet<string> = new Set([
  "model_list",
  "litellm_settings",
  "router_settings",
  "general_settings",
]);

/**
 * Names that other gateways and SDKs use for keys, and that a search for similar spellings misses.
 */
const foreignNames: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    api_base: ["base_url", "endpoint"],
    api_url: ["base_url", "endpoint"],
    url: ["base_url", "endpoint"],
    base_url: ["endpoint"],
    endpoint: ["base_url"],
    aws_region_name: ["region"],
    aws_access_key_id: ["access_key_id"],
    aws_secret_access_key: ["secret_access_key"],
    key: ["api_key"],
    token: ["api_key"],
    max_tokens: ["max_output_tokens"],
    max_input_tokens: ["context_window"],
    context_length: ["context_window"],
    rpm: ["requests_per_minute"],
    tpm: ["tokens_per_minute"],
    provider: ["kind"],
    type: ["kind"],
    domains: ["hosts"],
    cached: ["cache_read", "cached_input"],
    prompt: ["input"],
    completion: ["output"],
  }),
);

/** The key that was probably meant to be the missing one that a path ends with. */
function misspeltKey(tree: unknown, path: ConfigPath): ConfigPath | undefined {
  const parent = path.slice(0, -1);
  const map = valueAt(tree, parent);
  if (!isObject(map) || Object.hasOwn(map, String(path.at(-1)))) return undefined;
  const wanted = String(path.at(-1));
  const keys = Object.keys(map);
  const key =
    keys.find((each) => foreignNames.get(each)?.includes(wanted)) ??
    keys.find((each) => suggest(each, [wanted]) !== undefined);
  return key === undefined ? undefined : [...parent, key];
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

/** The form of a union that a constant, such as `kind`, selects, or the only one that is a map. */
function variant(schema: JsonSchema | undefined, value: unknown): JsonSchema | undefined {
  const maps = schema?.anyOf?.filter(isSchema).filter(({ properties }) => properties !== undefined);
  if (maps?.length === 1) return maps[0];
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
