import type { JsonObject } from "../../domain/json-object.ts";
import type { Entry } from "./entry.ts";

/** A deployment of LiteLLM's list as an upstream and the upstream's name of the model. */
export interface ConvertedTarget {
  /** The text from which the upstream's name is made. */
  readonly place: string;
  readonly upstream: JsonObject;
  readonly model: string;
}

/** Undefined for a provider whose address is not known. Throws nothing. */
export function convertTarget(params: Entry): ConvertedTarget | undefined {
  const written = params.text("model") ?? "";
  const provider = params.text("custom_llm_provider") ?? providerOf(written);
  const model = written.startsWith(`${provider}/`) ? written.slice(provider.length + 1) : written;
  if (model === "" || model.includes("*")) return undefined;
  const convert = converters.get(provider);
  return convert === undefined ? serverTarget(provider, model, params) : convert(model, params);
}

type Convert = (model: string, params: Entry) => ConvertedTarget | undefined;

/** Converters for providers with an API of their own. */
const converters: ReadonlyMap<string, Convert> = new Map([
  ["bedrock", bedrockTarget],
  ["bedrock_converse", bedrockTarget],
  ["azure", azureTarget],
]);

/** LiteLLM assumes OpenAI for a model without a provider. */
function providerOf(model: string): string {
  const [first = "", ...rest] = model.split("/");
  return rest.length === 0 ? "openai" : first;
}

const defaultRegion = "us-east-1";
const routes = /^(?:converse|invoke|converse_like|llama|deepseek_r1|nova)\//;
const regionInPath = /^([a-z]{2,4}(?:-[a-z]+)+-\d{1,2})\//;

function bedrockTarget(written: string, params: Entry): ConvertedTarget {
  const path = written.replace(routes, "");
  const [prefix = "", inPath] = regionInPath.exec(path) ?? [];
  const region = params.text("aws_region_name") ?? inPath ?? defaultRegion;
  const role = params.text("aws_role_name");
  const session = params.text("aws_session_name");
  const upstream = {
    kind: "bedrock",
    region,
    endpoint: params.text("aws_bedrock_runtime_endpoint") ?? params.text("api_base"),
    api_key: params.text("api_key"),
    access_key_id: params.text("aws_access_key_id"),
    secret_access_key: params.text("aws_secret_access_key"),
    session_token: params.text("aws_session_token"),
    profile: params.text("aws_profile_name"),
    assume_role: role && { role_arn: role, ...(session && { session_name: session }) },
  };
  const model = params.text("model_id") ?? path.slice(prefix.length);
  return { place: `bedrock-${region}`, upstream: withoutUndefined(upstream), model };
}

function azureTarget(model: string, params: Entry): ConvertedTarget | undefined {
  const base = params.text("api_base")?.replace(/\/+$/, "");
  if (base === undefined) return undefined;
  const upstream = {
    kind: "openai",
    base_url: `${base}/openai/deployments/${model}`,
    api_key: params.text("api_key"),
    api_key_header: "api-key",
    query: { "api-version": params.text("api_version") ?? "2024-10-21" },
  };
  return { place: `azure-${model}`, upstream: withoutUndefined(upstream), model };
}

/** Servers that LiteLLM knows by name, by their profiles. */
const profiles: ReadonlyMap<string, string> = new Map([
  ["ollama", "ollama"],
  ["ollama_chat", "ollama"],
  ["hosted_vllm", "vllm"],
  ["gemini", "gemini"],
  ["deepseek", "deepseek"],
  ["xai", "xai"],
  ["openrouter", "openrouter"],
  ["dashscope", "dashscope"],
]);

function serverTarget(provider: string, model: string, params: Entry): ConvertedTarget | undefined {
  const written = params.text("api_base") ?? params.text("base_url");
  const profile = profiles.get(provider);
  const base = written ?? (provider === "openai" ? "https://api.openai.com/v1" : undefined);
  if (base === undefined && profile === undefined) return undefined;
  // LiteLLM adds the path of Ollama's own API.
  const isShort = profile === "ollama" && base !== undefined && !/\/v1\/?$/.test(base);
  const upstream = {
    kind: "openai",
    profile,
    base_url: isShort ? `${base.replace(/\/+$/, "")}/v1` : base,
    api_key: params.text("api_key"),
  };
  return { place: provider, upstream: withoutUndefined(upstream), model };
}

function withoutUndefined(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
