import type { BuiltUpstream, FieldsOf, FileTarget, FileUpstream } from "../../kind.ts";
import {
  defaultModelSettings,
  type BedrockCredentials,
  type BedrockModelSettings,
  type BedrockSettings,
} from "../settings.ts";
import { camelCased } from "../../../settings/values.ts";
import { type Service, usualApi } from "../models/apis.ts";
import type { fields } from "./fields.ts";
import { regionalUpstreams, sitesIn, type RegionalUpstream } from "./sites.ts";
import type { targetSections } from "./target-sections.ts";

type Fields = FieldsOf<typeof fields>;
type Sections = typeof targetSections;
type Target = FileTarget<Sections>;

/**
 * An upstream in several regions becomes one for each, so that health, places, retry
 * budgets and metrics are kept by region.
 */
export function buildUpstreams({
  name,
  fields: written,
  targets,
}: FileUpstream<typeof fields, Sections>): readonly BuiltUpstream<BedrockSettings>[] {
  return regionalUpstreams(name, written).flatMap((upstream) => {
    const { region } = upstream;
    if (region === undefined) return [];
    const settings = {
      region,
      endpoint: written.endpoints[region] ?? written.endpoint,
      service: written.service,
      useFips: written.fips,
      credentials: buildCredentials(written),
      countsTokens: written.count_tokens,
      families: written.families,
      models: buildModels(upstream, targets, written.service),
    };
    return [{ name: upstream.name, settings }];
  });
}

function buildCredentials(upstream: Fields): BedrockCredentials {
  const { api_key: apiKey, access_key_id: accessKeyId, session_token: sessionToken } = upstream;
  const { secret_access_key: secretAccessKey, profile, assume_role: assumedRole } = upstream;
  if (apiKey !== undefined) return { source: "bearer", apiKey };
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    return { source: "chain", profile, assumedRole };
  }
  return { source: "static", accessKeyId, secretAccessKey, sessionToken, assumedRole };
}

function buildModels(
  upstream: RegionalUpstream,
  targets: readonly Target[],
  service: Service,
): BedrockSettings["models"] {
  const byAlias = new Map<string, Map<string, BedrockModelSettings>>();
  for (const target of targets) {
    const { alias, model: baseModel, section } = target;
    const { identifiers = {}, profiles = {} } = section ?? {};
    const written = buildModel(target, service);
    // Under its own identifier and those of its application inference profiles.
    const sites = sitesIn({ model: baseModel, identifiers, profiles }, [upstream]);
    for (const { model, modelFor } of sites) {
      const byIdentifier = byAlias.get(alias) ?? new Map<string, BedrockModelSettings>();
      byAlias.set(alias, byIdentifier);
      for (const each of [model, ...Object.values(modelFor)]) {
        byIdentifier.set(each, each === baseModel ? written : { ...written, baseModel });
      }
    }
  }
  return byAlias;
}

function buildModel(target: Target, service: Service): BedrockModelSettings {
  const api = target.kind === "chat" ? target.section?.api : undefined;
  return {
    ...defaultModelSettings,
    ...camelCased(target.section ?? {}),
    api: api ?? usualApi(target.model, service),
    maxOutputTokens: target.kind === "chat" ? target.maxOutputTokens : undefined,
  };
}
