import { buildConfig, type Config } from "./config.ts";
import { type Environment, interpolate, type InterpolationProblem } from "./text/interpolate.ts";
import type { ConfigPath, SettingProblem } from "../settings/values.ts";
import type { UpstreamKind } from "../upstreams/kind.ts";
import { upstreamKinds } from "../upstreams/kinds.ts";
import { type ConfigProblem, formatPath } from "./problems/problem.ts";
import { referenceProblems } from "./problems/references.ts";
import { configFileSchema } from "./schema.ts";
import { describeIssue, schemaProblems } from "./problems/schema-problems.ts";
import { parseYaml, type YamlTree } from "./text/yaml-tree.ts";

export type { ConfigProblem } from "./problems/problem.ts";
export { formatProblems } from "./problems/problem.ts";

export type ConfigResult =
  | { readonly ok: true; readonly config: Config }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] };

export interface ConfigSource {
  /** The name of the text for messages, such as the path of the file. */
  readonly name: string;
  readonly env: Environment;
}

/** Reads the text of a configuration file. Never throws; returns all problems at once. */
export function parseConfig(
  text: string,
  source: ConfigSource,
  kinds: readonly UpstreamKind[] = upstreamKinds,
): ConfigResult {
  const yaml = parseYaml(text);
  if (!yaml.ok) return yaml;
  const { value, problems: unset } = interpolate(yaml.tree.value, source.env);
  const parsed = configFileSchema(kinds).safeParse(value, { error: describeIssue });
  const found = [
    ...unset,
    ...withoutPaths(parsed.success ? [] : schemaProblems(parsed.error.issues, value, kinds), unset),
    ...withoutPaths(referenceProblems(value, kinds), unset),
  ];
  if (parsed.success && found.length === 0) {
    return { ok: true, config: buildConfig(parsed.data, kinds) };
  }
  return { ok: false, problems: found.map((problem) => located(problem, yaml.tree)) };
}

/** Drops problems of values with an unset variable, which is reported itself. */
function withoutPaths(
  problems: readonly SettingProblem[],
  unset: readonly InterpolationProblem[],
): readonly SettingProblem[] {
  const skipped = new Set(unset.map(({ path }) => pathKey(path)));
  return problems.filter(({ path }) => !skipped.has(pathKey(path)));
}

function pathKey(path: ConfigPath): string {
  return JSON.stringify(path);
}

function located({ path, ...rest }: SettingProblem, tree: YamlTree): ConfigProblem {
  return { path: formatPath(path), ...tree.locate(path), ...rest };
}
