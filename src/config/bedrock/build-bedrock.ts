import type { Capabilities } from "../../upstreams/bedrock/models/model-families.ts";
import {
  defaultModelSettings,
  type AssumedRole,
  type BedrockCredentials,
  type BedrockModelSettings,
  type BedrockSettings,
  type Guardrail,
} from "../../upstreams/bedrock/settings.ts";
import type { PlacedBedrock, PlacedModel, PlacedModels, PlacedTarget } from "./expand-regions.ts";
import type { ConfigFile } from "../schema/schema.ts";

type ChatModelFile = Extract<ConfigFile["models"][string], { kind: "chat" }>;
type EmbeddingModelFile = Extract<ConfigFile["models"][string], { kind: "embedding" }>;
type ChatSection = NonNullable<ChatModelFile["targets"][number]["bedrock"]>;
type EmbeddingSection = NonNullable<EmbeddingModelFile["targets"][number]["bedrock"]>;

/** An upstream of kind `bedrock`, with what the targets that name it say of their models. */
export function buildBedrockUpstream(
  name: string,
  upstream: PlacedBedrock,
  models: PlacedModels,
): { readonly kind: "bedrock" } & BedrockSettings {
  return {
    kind: upstream.kind,
    region: upstream.region,
    endpoint: upstream.endpoint,
    useFips: upstream.fips,
    credentials: buildCredentials(upstream),
    countsTokens: upstream.count_tokens,
    models: buildModels(name, models),
  };
}

function buildCredentials(upstream: PlacedBedrock): BedrockCredentials {
  const { api_key: apiKey, access_key_id: accessKeyId, session_token: sessionToken } = upstream;
  const { secret_access_key: secretAccessKey, profile } = upstream;
  if (apiKey !== undefined) return { source: "bearer", apiKey };
  const assumedRole = buildAssumedRole(upstream.assume_role);
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    return { source: "chain", profile, assumedRole };
  }
  return { source: "static", accessKeyId, secretAccessKey, sessionToken, assumedRole };
}

function buildAssumedRole(role: PlacedBedrock["assume_role"]): AssumedRole | undefined {
  if (role === undefined) return undefined;
  return {
    roleArn: role.role_arn,
    externalId: role.external_id,
    sessionName: role.session_name,
    sessionTags: role.session_tags,
    durationMs: role.duration,
  };
}

function buildModels(upstream: string, models: PlacedModels): BedrockSettings["models"] {
  const byAlias = new Map<string, ReadonlyMap<string, BedrockModelSettings>>();
  for (const [alias, model] of Object.entries(models)) {
    const byIdentifier = new Map(targetsOf(upstream, model));
    if (byIdentifier.size > 0) byAlias.set(alias, byIdentifier);
  }
  return byAlias;
}

function targetsOf(
  upstream: string,
  model: PlacedModel,
): readonly (readonly [identifier: string, settings: BedrockModelSettings])[] {
  switch (model.kind) {
    case "chat":
      return model.targets
        .filter((target) => target.upstream === upstream)
        .flatMap((target) => underProfiles(target, buildChatModel(model, target.bedrock)));
    case "embedding":
      return model.targets
        .filter((target) => target.upstream === upstream)
        .flatMap((target) => underProfiles(target, buildEmbeddingModel(target.bedrock)));
  }
}

/** A model under its own identifier, and under those of its application inference profiles. */
function underProfiles(
  { model, baseModel, bedrock }: PlacedTarget,
  settings: BedrockModelSettings,
): readonly (readonly [identifier: string, settings: BedrockModelSettings])[] {
  const identifiers = [model, ...Object.values(bedrock?.profiles ?? {}).flat()];
  return identifiers.map((each) => [
    each,
    each === baseModel ? settings : { ...settings, baseModel },
  ]);
}

function buildChatModel(
  { max_output_tokens: maxOutputTokens }: Pick<ChatModelFile, "max_output_tokens">,
  section: ChatSection | undefined,
): BedrockModelSettings {
  if (section === undefined) return { ...defaultModelSettings, maxOutputTokens };
  return {
    ...defaultModelSettings,
    family: section.family,
    maxOutputTokens,
    defaultOutputTokens: section.default_output_tokens,
    capabilities: buildCapabilities(section.capabilities),
    dropUnsupported: section.drop_unsupported,
    conversation: section.conversation,
    promptCache: section.prompt_cache,
    validateAnswers: section.validate_answers,
    guardrail: buildGuardrail(section.guardrail),
    requestMetadata: section.request_metadata,
    serviceTier: section.service_tier,
    latency: section.latency,
    additionalFields: section.additional_fields,
  };
}

function buildEmbeddingModel(section: EmbeddingSection | undefined): BedrockModelSettings {
  if (section === undefined) return defaultModelSettings;
  const { family, input_type: inputType, truncate } = section;
  return { ...defaultModelSettings, family, inputType, truncate };
}

function buildGuardrail(guardrail: ChatSection["guardrail"]): Guardrail | undefined {
  if (guardrail === undefined) return undefined;
  const { identifier, version, trace, stream_processing: streamProcessing } = guardrail;
  return { identifier, version, trace, streamProcessing };
}

type CapabilitiesFile = ChatSection["capabilities"];
type FlagName = Exclude<
  keyof Capabilities,
  | "reasoning"
  | "thinkingOff"
  | "maxOutputTokens"
  | "maxImages"
  | "maxImageBytes"
  | "promptCacheMinTokens"
>;

/** What the file calls each of the flags. */
const flagKeys = {
  system: "system",
  tools: "tools",
  streamingTools: "streaming_tools",
  toolChoice: "tool_choice",
  namedToolChoice: "named_tool_choice",
  toolResultsWithText: "tool_results_with_text",
  singleToolCalls: "single_tool_calls",
  temperature: "temperature",
  topP: "top_p",
  topPWithTemperature: "top_p_with_temperature",
  topK: "top_k",
  stop: "stop",
  prefill: "prefill",
  images: "images",
  toolResultImages: "tool_result_images",
  documents: "documents",
  promptCaching: "prompt_caching",
  promptCacheHour: "prompt_cache_hour",
  promptCacheTools: "prompt_cache_tools",
  jsonSchema: "json_schema",
  xhighEffort: "xhigh_effort",
  omitsThoughts: "omits_thoughts",
  nineCharacterToolIds: "nine_character_tool_ids",
  countTokens: "count_tokens",
} as const satisfies Readonly<Record<FlagName, keyof CapabilitiesFile>>;

/** Only what the file says: the rest is the family's. */
function buildCapabilities(file: CapabilitiesFile): Partial<Capabilities> {
  const { reasoning, thinking_off: thinkingOff, max_output_tokens: maxOutputTokens } = file;
  const { prompt_cache_min_tokens: promptCacheMinTokens } = file;
  const { max_images: maxImages, max_image_bytes: maxImageBytes } = file;
  const flags = Object.entries(flagKeys).flatMap(([name, key]) => {
    const value = file[key];
    return value === undefined ? [] : [[name, value] as const];
  });
  return {
    ...Object.fromEntries(flags),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(thinkingOff === undefined ? {} : { thinkingOff }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(promptCacheMinTokens === undefined ? {} : { promptCacheMinTokens }),
    ...(maxImages === undefined ? {} : { maxImages }),
    ...(maxImageBytes === undefined ? {} : { maxImageBytes }),
  };
}
