import type { Config, UpstreamSettings } from "../../src/config/config.ts";
import type { BedrockSettings } from "../../src/upstreams/bedrock/settings.ts";
import type { OpenAiSettings } from "../../src/upstreams/openai/config.ts";

interface SettingsByKind {
  readonly bedrock: BedrockSettings;
  readonly openai: OpenAiSettings;
}

/** A configured upstream with the settings of its kind. */
export function upstreamOfKind<Kind extends keyof SettingsByKind>(
  config: Pick<Config, "upstreams">,
  kind: Kind,
  name: string,
): UpstreamSettings & { readonly settings: SettingsByKind[Kind] } {
  const found = config.upstreams.get(name);
  if (found?.kind.name !== kind) throw new Error(`${name} is missing`);
  return { ...found, settings: found.settings as SettingsByKind[Kind] };
}
