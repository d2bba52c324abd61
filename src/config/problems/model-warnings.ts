import type { Model } from "../../domain/model.ts";
import {
  factWarnings,
  lifecycleWarnings,
  type ConfiguredModel,
} from "../../upstreams/bedrock/facts/model-warnings.ts";
import type { BedrockUpstreamSettings, Config } from "../config.ts";

type ServedParts = Pick<Config, "environments" | "upstreams">;
type Warn = (configured: ConfiguredModel) => readonly string[];

/** Models that their provider ends. `now`: wall clock, ms. */
export function endingModels(config: ServedParts, now: number): readonly string[] {
  return warningsOf(config, (configured) => lifecycleWarnings(configured, now));
}

/** Where the kinds of upstream know models otherwise than the operator says, or not at all. */
export function doubtfulModels(config: ServedParts): readonly string[] {
  return warningsOf(config, factWarnings);
}

function warningsOf({ environments, upstreams }: ServedParts, warn: Warn): readonly string[] {
  const models = new Map(environments.flatMap((environment) => [...environment.models]));
  const warnings = [...upstreams.values()].flatMap((upstream) => {
    switch (upstream.kind) {
      case "bedrock":
        return warningsAt(upstream, models, warn);
      case "openai":
        return [];
    }
  });
  return [...new Set(warnings)];
}

function warningsAt(
  upstream: BedrockUpstreamSettings,
  models: ReadonlyMap<string, Model>,
  warn: Warn,
): readonly string[] {
  return [...upstream.models].flatMap(([alias, byIdentifier]) => {
    const model = models.get(alias);
    if (model === undefined) return [];
    return [...byIdentifier].flatMap(([identifier, settings]) =>
      warn({ model, identifier, settings }),
    );
  });
}
