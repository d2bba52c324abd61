import { knownFamilies } from "./facts.ts";
import type { Capabilities } from "../config/capabilities.ts";
import { defaultModelSettings, type BedrockModelSettings } from "../settings.ts";

/** One model at one target, with its capabilities. */
export interface BedrockModel {
  readonly identifier: string;
  readonly family: string;
  /** For chat models; they have no meaning for an embedding model. */
  readonly capabilities: Capabilities;
  /**
   * The longest answer by the operator's setting; undefined if only the table has one, which a
   * newer model may exceed.
   */
  readonly statedOutputTokens: number | undefined;
  readonly settings: Omit<BedrockModelSettings, "family" | "capabilities" | "maxOutputTokens">;
}

/** Combines the identifier and the operator's settings of a model. Once per target. */
export function bedrockModelOf(
  identifier: string,
  settings: BedrockModelSettings = defaultModelSettings,
  families = knownFamilies,
): BedrockModel {
  const named =
    families.familyOf(identifier) ?? families.familyOf(settings.baseModel ?? identifier);
  const family = settings.family ?? named ?? "other-chat";
  const capabilities = { ...families.capabilitiesOf(family), ...settings.capabilities };
  const maxOutputTokens = lower(capabilities.maxOutputTokens, settings.maxOutputTokens);
  return {
    identifier,
    family,
    capabilities: { ...capabilities, maxOutputTokens },
    statedOutputTokens: settings.capabilities.maxOutputTokens,
    settings,
  };
}

function lower(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Math.min(one, other);
}
