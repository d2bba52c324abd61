import { isObject } from "../domain/json-object.ts";
import { dataDirectorySchema } from "./sections/server.ts";
import { type Environment, interpolate } from "./text/interpolate.ts";
import { parseYaml } from "./text/yaml-tree.ts";

/**
 * Reads only `data_dir` of a configuration file, whatever is wrong with the rest: a command that
 * looks for the running gateway may lack its secrets. Undefined: the text is no YAML, or the value is unusable.
 */
export function readDataDir(text: string, environment: Environment): string | undefined {
  const yaml = parseYaml(text);
  if (!yaml.ok) return undefined;
  const { value: tree } = yaml.tree;
  if (tree !== undefined && tree !== null && !isObject(tree)) return undefined;
  const { value, problems } = interpolate(tree?.["data_dir"], environment);
  if (problems.length > 0) return undefined;
  const read = dataDirectorySchema.safeParse(value);
  return read.success ? read.data : undefined;
}
