import { basename, dirname, join } from "node:path";
import { Argument } from "commander";
import { convertLiteLlm } from "../config/litellm/convert-litellm.ts";
import { convertTensorZero } from "../config/litellm/convert-tensorzero.ts";
import { type ConfigProblem, formatProblems, parseConfig } from "../config/load.ts";
import { formatPath } from "../config/problems/problem.ts";
import { interpolate } from "../config/text/interpolate.ts";
import { writeYaml } from "../config/text/yaml-syntax.ts";
import { parseYaml } from "../config/text/yaml-tree.ts";
import { isObject, type JsonObject } from "../domain/json-object.ts";
import { exitCodes } from "../process/program.ts";
import { CommandError, type Command, type CommandIo } from "./command.ts";
import { exitCodeHelp } from "./program.ts";
import { readTextFile } from "./read-input.ts";

export const importCommand: Command = (made, { io, action }) => {
  made
    .usage("litellm|tensorzero FILE > sluice.yaml")
    .description(
      "Converts the configuration of a LiteLLM proxy, or the models of TensorZero's, and prints it as a configuration of Sluice: " +
        "models, their targets with credentials, prices and order, fallbacks and timeouts. What differs is " +
        "listed at the top of the result and on standard error, with advice. Keys, users and " +
        "budgets are in LiteLLM's database and are not converted.",
    )
    .addArgument(new Argument("<source>", "The other gateway.").choices(["litellm", "tensorzero"]))
    .argument("<file>", "Its configuration.")
    .addHelpText(
      "after",
      exitCodeHelp("with its variables set, the result passes check-config", "it does not"),
    )
    .action(action((source: string, path: string) => importFile(source, path, io)));
};

function importFile(source: string, path: string, io: CommandIo): number {
  const { file, notes, hasModels } =
    source === "tensorzero" ? convertTensorZero(readToml(path)) : convertLiteLlm(readLiteLlm(path));
  if (!hasModels) {
    for (const note of notes) io.report(note);
    throw new CommandError(`${path}: none of its deployments can be carried over`);
  }
  const text = writeYaml(file, [`Converted from ${basename(path)}.`, ...notes]);
  io.print(text.trimEnd());
  for (const note of notes) io.report(note);
  const problems = problemsOf(text, file);
  if (problems.length === 0) return exitCodes.ok;
  io.report(formatProblems("the result", problems));
  return exitCodes.failed;
}

function readLiteLlm(path: string): JsonObject {
  const tree = readTree(path);
  if (Object.hasOwn(tree, "model_list")) return tree;
  throw new CommandError(
    `${path}: it has no model_list, so it is no configuration of LiteLLM, or its models are in ` +
      "LiteLLM's database, which is not read",
  );
}

function readToml(path: string): JsonObject {
  const text = readTextFile(path);
  try {
    const tree: unknown = Bun.TOML.parse(text);
    return isObject(tree) ? tree : {};
  } catch {
    throw new CommandError(`${path}: is not valid TOML`);
  }
}

/** The file with those that it includes: lists follow each other, other values replace earlier ones. */
function readTree(path: string, from: readonly string[] = []): JsonObject {
  if (from.includes(path)) throw new CommandError(`${path}: includes itself`);
  // LiteLLM's files share settings in this way.
  const yaml = parseYaml(readTextFile(path), { merge: true });
  if (!yaml.ok) throw new CommandError(formatProblems(path, yaml.problems));
  const { include, ...own } = yaml.tree.value;
  let tree: JsonObject = own;
  for (const name of Array.isArray(include) ? include : []) {
    const included = readTree(join(dirname(path), String(name)), [...from, path]);
    for (const [key, value] of Object.entries(included)) {
      const before = tree[key];
      const areLists = Array.isArray(before) && Array.isArray(value);
      tree = { ...tree, [key]: areLists ? [before, value].flat() : value };
    }
  }
  return tree;
}

/** Problems of the result, but not of values with variables, which are set where the gateway runs. */
function problemsOf(text: string, file: JsonObject): readonly ConfigProblem[] {
  const result = parseConfig(text, { name: "the result", env: {} });
  if (result.ok) return [];
  const unset = interpolate(file, {}).problems.map(({ path }) => formatPath(path));
  return result.problems.filter(({ path }) => !unset.includes(path));
}
