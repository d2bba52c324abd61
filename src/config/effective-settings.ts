import { isObject, isSameValue } from "../domain/json-object.ts";
import type { ConfigPath } from "../settings/values.ts";
import { needsRestart } from "./restart-settings.ts";
import { formatPath } from "./problems/problem.ts";
import { configInputSchema, isSchema, type JsonSchema } from "./schema.ts";
import { withDefaultPlans } from "./sections/plans.ts";
import { type Environment, expandPlaceholders } from "./text/interpolate.ts";
import { parseYaml, type YamlTree } from "./text/yaml-tree.ts";

/** A setting in use, as an operator writes it. */
export interface SettingInUse {
  /** Such as `environments[0].name`. */
  readonly key: string;
  /** With its unit; what may be a secret is masked. Null: nothing, until a restart. */
  readonly value: unknown;
  readonly source: "default" | "file" | "environment" | "command_line";
  /** Of the file, from 1; undefined for what it does not set. */
  readonly line: number | undefined;
  /** Variables of the environment that the file names for it. */
  readonly variables: readonly string[];
  readonly about: string;
  readonly takesEffect: "reload" | "restart";
  /** Whether the file has another value, which waits for a restart. */
  readonly isPending: boolean;
}

interface SettingSources {
  readonly env: Environment;
  /** Values of the command line by their keys, which precede those of the file. */
  readonly given: Readonly<Record<string, string | undefined>>;
}

/**
 * The settings of a process that began with `startText`, and has loaded `text` since: some change
 * only with a restart. Defaults are included, optional settings that nothing sets are not.
 */
export function settingsInUse(
  text: string,
  startText: string,
  sources: SettingSources,
): readonly SettingInUse[] {
  const latest = settingsOf(text, sources);
  const started = startText === text ? latest : settingsOf(startText, sources);
  const kept = [...started].flatMap(([key, { setting, written }]) => {
    if (setting.takesEffect !== "restart") return [];
    const next = latest.get(key);
    const isPending = !isSameValue(written, next?.written);
    return [{ ...setting, line: next?.setting.line, isPending }];
  });
  const others = [...latest.values()].flatMap(({ setting }) => {
    if (setting.takesEffect === "reload") return [setting];
    return started.has(setting.key) ? [] : [{ ...setting, value: null, isPending: true }];
  });
  return [...kept, ...others];
}

interface Described {
  readonly setting: SettingInUse;
  /** Not masked, to compare. */
  readonly written: unknown;
}

const mask = "[redacted]";
const longestText = 1_000;

let schemaOfFile: JsonSchema | undefined;

function settingsOf(text: string, sources: SettingSources): ReadonlyMap<string, Described> {
  const yaml = parseYaml(text);
  if (!yaml.ok) return new Map();
  const { value } = yaml.tree;
  const whole = { ...value, plans: withDefaultPlans(value["plans"] ?? {}) };
  schemaOfFile ??= configInputSchema();
  const leaves = [...leavesOf({ schema: schemaOfFile, value: whole, path: [] })];
  const described = leaves.map((leaf) => describe(leaf, yaml.tree, sources));
  return new Map(described.map((each) => [each.setting.key, each]));
}

interface Leaf {
  readonly schema: JsonSchema;
  /** As written, or the default. */
  readonly value: unknown;
  readonly path: ConfigPath;
}

function* leavesOf({ schema: general, value, path }: Leaf): Generator<Leaf> {
  const schema = formOf(general, value);
  const { properties, additionalProperties, items } = schema;
  if (properties !== undefined && isObject(value)) {
    for (const [key, part] of Object.entries(properties)) {
      if (!isSchema(part)) continue;
      const inner = value[key] ?? part.default;
      if (inner === undefined) continue;
      yield* leavesOf({ schema: part, value: inner, path: [...path, key] });
    }
  } else if (isSchema(additionalProperties) && isObject(value)) {
    for (const [key, inner] of Object.entries(value)) {
      yield* leavesOf({ schema: additionalProperties, value: inner, path: [...path, key] });
    }
  } else if (isSchema(items) && Array.isArray(value) && value.some(isObject)) {
    for (const [index, inner] of value.entries()) {
      yield* leavesOf({ schema: items, value: inner, path: [...path, index] });
    }
  } else {
    yield { schema, value, path };
  }
}

/** The form of a map that its `kind` selects. */
function formOf(schema: JsonSchema, value: unknown): JsonSchema {
  const forms = schema.oneOf?.filter(isSchema) ?? [];
  const kind = isObject(value) ? value["kind"] : undefined;
  const chosen = forms.find(({ properties }) => {
    const named = properties?.["kind"];
    return isSchema(named) && named.const === kind;
  });
  return chosen ?? forms[0] ?? schema;
}

function describe(
  { schema, value, path }: Leaf,
  tree: YamlTree,
  { env, given }: SettingSources,
): Described {
  const key = formatPath(path);
  const typed = given[key];
  const isOfFile = typed === undefined && isWritten(tree.value, path);
  const variables = isOfFile ? variablesIn(value) : [];
  const ofFile = variables.length > 0 ? "environment" : "file";
  // A free text may be a secret that is kept out of the file.
  const isExpanded = isOfFile && typeof value === "string" && hasLimitedForms(schema);
  const written = typed ?? (isExpanded ? expandPlaceholders(value, env).text : value);
  const setting: SettingInUse = {
    key,
    value: withSecretPath.has(key) ? originOf(written) : shown(schema, written),
    source: isOfFile ? ofFile : typed === undefined ? "default" : "command_line",
    line: isOfFile ? tree.locate(path).line : undefined,
    variables,
    about: schema.description ?? "",
    takesEffect: needsRestart(key) ? "restart" : "reload",
    isPending: false,
  };
  return { setting, written };
}

function isWritten(tree: unknown, path: ConfigPath): boolean {
  let value = tree;
  for (const step of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return false;
    value = Object.getOwnPropertyDescriptor(value, step)?.value;
  }
  return value !== null;
}

function variablesIn(value: unknown): readonly string[] {
  const found = JSON.stringify(value).matchAll(/(?<!\$)\$\{([A-Za-z_]\w*)/g);
  return [...new Set([...found].map(([, name = ""]) => name))];
}

const limitedTitles: ReadonlySet<string> = new Set(["duration", "size", "address"]);

/** Whether the value is a number, a flag, a choice or the like. */
function hasLimitedForms({ title = "", type, enum: choices }: JsonSchema): boolean {
  return (
    limitedTitles.has(title) || type === "integer" || type === "boolean" || choices !== undefined
  );
}

function shown(schema: JsonSchema, value: unknown): unknown {
  if (schema.title === "secret") return mask;
  if (Array.isArray(value)) {
    const items = isSchema(schema.items) ? schema.items : {};
    return value.map((item) => shown(items, item));
  }
  if (isObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, shown({}, part)]));
  }
  return typeof value === "string" ? withoutCredentials(value).slice(0, longestText) : value;
}

/** URLs whose path is often the credential. */
const withSecretPath: ReadonlySet<string> = new Set([
  "ledger.events.webhook.url",
  "telemetry.otlp.endpoint",
]);

function originOf(url: unknown): unknown {
  const text = typeof url === "string" ? withoutCredentials(url) : "";
  return text.replace(/^([^:]*:\/\/[^/?#\\]*).+$/s, `$1/${mask}`);
}

/** Hides user, password and query of a URL. */
function withoutCredentials(text: string): string {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return text;
  return text.replace(/:\/\/.*@/s, `://${mask}@`).replace(/\?.*$/s, `?${mask}`);
}
