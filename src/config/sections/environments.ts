import { z } from "zod";
import type { Environment, Model, OtherNames } from "../../domain/model.ts";
import { hostName, identifier, modelAlias, text } from "../../settings/values.ts";
import { buildModel, type ModelSources } from "./models.ts";

const hostProblem = "must be a host name without port, such as models.example.com, or '*'";

export const environmentsSchema = z
  .array(
    z.strictObject({
      name: identifier("Name of the environment; keys belong to it."),
      hosts: z
        .array(hostName(hostProblem, { allowsAny: true }))
        .min(1)
        .max(1000)
        .describe("Exact hosts that callers use, without port; `*` is every other host."),
      models: z
        .array(text("Alias."))
        .min(1)
        .describe("Aliases that this environment offers; `*` is all."),
      aliases: z
        .record(
          text("Name, or its beginning with a `*` behind it.").regex(
            /^[^*\s]{1,128}\*?$/,
            "must be 1 to 128 characters without white space, and have no '*' but at its end",
          ),
          modelAlias("Alias of a model that this environment offers."),
        )
        .prefault({})
        .describe("Other names for its models, such as `claude-*: alpha-sonnet-4`."),
    }),
  )
  .min(1)
  .max(1000)
  .describe("List of deployment stages with their own hosts, models and keys.");

type EnvironmentFile = z.output<typeof environmentsSchema>[number];

export interface ConfiguredEnvironment extends Environment {
  /** Lower case, without port; `*` matches every host that no environment names. */
  readonly hosts: readonly string[];
}

export function buildEnvironment(
  { name, hosts, models: offered, aliases: others }: EnvironmentFile,
  sources: ModelSources,
): ConfiguredEnvironment {
  const aliases = offered.includes("*") ? Object.keys(sources.models) : offered;
  const built = new Map<string, Model>();
  for (const alias of aliases) {
    const model = buildModel(alias, name, sources);
    if (model !== undefined) built.set(alias, model);
  }
  return { name, hosts, models: built, otherNames: readOtherNames(others) };
}

function readOtherNames(names: Readonly<Record<string, string>>): OtherNames | undefined {
  const entries = Object.entries(names);
  if (entries.length === 0) return undefined;
  const beginnings = entries.filter(([name]) => name.endsWith("*"));
  return {
    exact: new Map(entries.filter(([name]) => !name.endsWith("*"))),
    prefixes: beginnings
      .map(([name, alias]) => ({ prefix: name.slice(0, -1), alias }))
      .toSorted((one, other) => other.prefix.length - one.prefix.length),
  };
}
