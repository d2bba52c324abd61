import { z } from "zod";
import type { Environment, Model } from "../../domain/model.ts";
import { hostName, identifier, text } from "../../settings/values.ts";
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
    }),
  )
  .min(1)
  .max(1000)
  .describe("Deployment stages with their own hosts, models and keys.");

type EnvironmentFile = z.output<typeof environmentsSchema>[number];

export interface ConfiguredEnvironment extends Environment {
  /** Lower case, without port; `*` matches every host that no environment names. */
  readonly hosts: readonly string[];
}

export function buildEnvironment(
  { name, hosts, models: offered }: EnvironmentFile,
  sources: ModelSources,
): ConfiguredEnvironment {
  const aliases = offered.includes("*") ? Object.keys(sources.models) : offered;
  const built = new Map<string, Model>();
  for (const alias of aliases) {
    const model = buildModel(alias, name, sources);
    if (model !== undefined) built.set(alias, model);
  }
  return { name, hosts, models: built };
}
