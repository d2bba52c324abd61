import type { Model } from "../domain/model.ts";
import { modelWarnings } from "../upstreams/bedrock/facts/model-warnings.ts";
import type { BedrockUpstreamSettings, Config } from "./config.ts";

/** What the kinds of upstream have to say of the models they are to serve. `now`: wall clock, ms. */
export function upstreamModelWarnings(
  { environments, upstreams }: Pick<Config, "environments" | "upstreams">,
  now: number,
): readonly string[] {
  const models = new Map(environments.flatMap((environment) => [...environment.models]));
  const warnings = [...upstreams.values()].flatMap((upstream) => {
    switch (upstream.kind) {
      case "bedrock":
        return warningsAt(upstream, models, now);
      case "openai":
        return [];
    }
  });
  return [...new Set(warnings)];
}

function warningsAt(
  upstream: BedrockUpstreamSettings,
  models: ReadonlyMap<string, Model>,
  now: number,
): readonly string[] {
  return [...upstream.models].flatMap(([alias, byIdentifier]) => {
    const model = models.get(alias);
    if (model === undefined) return [];
    return [...byIdentifier].flatMap(([identifier, settings]) =>
      modelWarnings({ model, identifier, settings }, now),
    );
  });
}
