import { isObject, type JsonObject } from "../../domain/json-object.ts";
import type { Entry } from "./entry.ts";
import rows from "./providers.json" with { type: "json" };

/** A deployment of LiteLLM's list as an upstream, and a target at it. */
export interface ConvertedTarget {
  /** The text from which the upstream's name is made. */
  readonly place: string;
  readonly upstream: JsonObject;
  readonly model: string;
  /** The target's section for the upstream's kind. */
  readonly section: JsonObject;
  readonly api: Api;
}

interface Api {
  /** Requests are written for each model, and may leave out what it lacks. */
  readonly isAdapted: boolean;
  /** A model that Sluice does not know needs a cap of its answers. */
  readonly needsCap: boolean;
  readonly hasEmbeddings: boolean;
}

const openAi = { isAdapted: false, needsCap: false, hasEmbeddings: true };
const claude = { isAdapted: true, needsCap: false, hasEmbeddings: false };
const bedrock = { isAdapted: true, needsCap: true, hasEmbeddings: true };

/** What LiteLLM knows of a provider by its name. */
interface Provider {
  /** Default: `openai`. */
  readonly kind?: string;
  readonly profile?: string;
  /** The address if the file has none. A profile has its own. */
  readonly base?: string;
  /** The variable of the credential if the file has none. Absent: it needs none. */
  readonly key?: string;
  /** Models that are its without its name before them, as LiteLLM's own list has them. */
  readonly names?: string;
  /** An address there is this provider, whatever the file calls it. */
  readonly host?: string;
  readonly settings?: JsonObject;
  /** Why its deployments are left out. */
  readonly unserved?: string;
}

const providers: ReadonlyMap<string, Provider> = new Map(Object.entries(rows));

interface Request {
  readonly params: Entry;
  /** The name of the provider, as LiteLLM knows it. */
  readonly name: string;
  readonly provider: Provider;
  readonly model: string;
  /** Says what the operator should know; the deployment's alias is added. */
  readonly tell: (sentence: string) => void;
}

/** A text is the reason why the deployment is left out. Throws nothing. */
export function convertTarget(params: Entry, tell: Request["tell"]): ConvertedTarget | string {
  const written = params.text("model") ?? "";
  if (written === "") return "it names no model";
  if (written.includes("*")) return "a wildcard; name each model that callers use";
  const name = params.text("custom_llm_provider") ?? providerOf(written);
  const provider = providers.get(name);
  if (provider?.unserved !== undefined) return provider.unserved;
  const isPrefixed = written.startsWith(`${name}/`);
  const model = isPrefixed ? written.slice(name.length + 1) : written;
  if (model === "") return "it names no model";
  if (written.startsWith("${")) {
    tell("The model is in a variable, which must have its name without a provider's prefix");
  }
  if (provider === undefined) {
    const hasBase = ["api_base", "base_url"].some((key) => params.peek(key) !== undefined);
    if (!hasBase) {
      return `its provider ${name} is not known; with an api_base it is taken as OpenAI's API`;
    }
    tell(`The provider ${name} is not known and taken for a server of OpenAI's API`);
    return serverTarget({ params, name, provider: {}, model, tell });
  }
  const convert = converters.get(name) ?? serverTarget;
  return convert({ params, name, provider, model, tell });
}

type Convert = (request: Request) => ConvertedTarget | string;

/** Converters for providers with an API or addresses of their own. */
const converters: ReadonlyMap<string, Convert> = new Map<string, Convert>([
  ["bedrock", bedrockTarget],
  ["bedrock_converse", bedrockTarget],
  ["azure", azureTarget],
  ["azure_ai", azureAiTarget],
  ["anthropic", anthropicTarget],
]);

/** LiteLLM assumes OpenAI for a model without a provider that it does not know. */
function providerOf(model: string): string {
  const [first = "", ...rest] = model.split("/");
  if (rest.length > 0 && !model.startsWith("${")) return first;
  const known = [...providers].find(([, { names }]) => {
    return names !== undefined && new RegExp(`^(?:${names})`).test(model);
  });
  return known?.[0] ?? "openai";
}

const routes = /^(?:converse|invoke|converse_like|llama|deepseek_r1|nova|imported|openai)\//;
const regionInPath = /^([a-z]{2,4}(?:-[a-z]+)+-\d{1,2})\//;
const regionInArn = /^arn:[^:]*:bedrock:([^:]+):/;

function bedrockTarget({ params, model: written, tell }: Request): ConvertedTarget | string {
  if (/^agent(?:core)?\//.test(written)) return "an agent, and Sluice calls models";
  const path = written.replace(routes, "");
  const [prefix = "", inPath] = regionInPath.exec(path) ?? [];
  const named = path.slice(prefix.length);
  const id = params.text("model_id");
  // The model's name says what it can do, which an ARN hides.
  const isProfile = id?.includes(":application-inference-profile/") === true;
  const model = id === undefined || isProfile ? named : id;
  const region = params.text("aws_region_name") ?? inPath ?? regionInArn.exec(id ?? named)?.[1];
  if (region === undefined) {
    tell(
      "The region is AWS_REGION_NAME, else us-west-2, as in LiteLLM; AWS_REGION and profiles, which LiteLLM " +
        "asks too, are not asked",
    );
  }
  const role = params.text("aws_role_name");
  const session = params.text("aws_session_name");
  const guardrail = params.map("guardrailConfig");
  const identifier = guardrail.text("guardrailIdentifier");
  const upstream = {
    kind: "bedrock",
    region: region ?? "${AWS_REGION_NAME:-us-west-2}",
    endpoint: params.text("aws_bedrock_runtime_endpoint") ?? params.text("api_base"),
    api_key: params.text("api_key"),
    access_key_id: params.text("aws_access_key_id"),
    secret_access_key: params.text("aws_secret_access_key"),
    session_token: params.text("aws_session_token"),
    profile: params.text("aws_profile_name"),
    assume_role: role && { role_arn: role, ...(session && { session_name: session }) },
  };
  const version = guardrail.text("guardrailVersion") ?? "DRAFT";
  const section = {
    guardrail: identifier && { identifier, version },
    ...(isProfile && { profiles: { production: id } }),
  };
  const place = region === undefined ? "bedrock" : `bedrock-${region}`;
  return { place, upstream: stated(upstream), model, section: stated(section), api: bedrock };
}

function anthropicTarget({ params, provider, model, tell }: Request): ConvertedTarget {
  const { base } = addressOf(params);
  const upstream = {
    kind: "anthropic",
    base_url: base?.replace(/(?:\/v1)?(?:\/messages)?$/, ""),
    api_key: keyOf(params, provider, tell),
  };
  return { place: "anthropic", upstream: stated(upstream), model, section: {}, api: claude };
}

const usualAzureVersion = "${AZURE_API_VERSION:-2025-02-01-preview}";

function azureTarget({ params, provider, model: written, tell }: Request): ConvertedTarget {
  const { base = provider.base ?? "", query } = addressOf(params);
  const isResponses = written.startsWith("responses/");
  const model = written.replace(/^responses\//, "");
  const { "api-version": inBase, ...others } = query;
  const version = params.text("api_version") ?? inBase;
  const isVersioned = /^(?:v1|latest|preview)$/.test(version ?? "") || base.endsWith("/openai/v1");
  const root = base.replace(/\/openai(?:\/v1)?$/, "");
  const deployment = base.includes("/openai/deployments/")
    ? base
    : `${root}/openai/deployments/${model}`;
  const tenant = params.text("tenant_id");
  const entra = tenant && {
    tenant_id: tenant,
    client_id: params.text("client_id"),
    client_secret: params.text("client_secret"),
  };
  const upstream = {
    kind: "openai",
    profile: "azure",
    base_url: isVersioned ? `${root}/openai/v1` : isResponses ? `${root}/openai` : deployment,
    ...(entra ? { entra } : { api_key: keyOf(params, provider, tell) }),
    query: isVersioned
      ? { ...others, ...(version === "preview" && { "api-version": version }) }
      : { ...others, "api-version": version ?? usualAzureVersion },
    headers: headersOf(params),
  };
  const section = isResponses ? { api: "responses" } : {};
  return { place: `azure-${model}`, upstream: stated(upstream), model, section, api: openAi };
}

function azureAiTarget(request: Request): ConvertedTarget {
  const { params, provider, model, tell } = request;
  const { base = provider.base ?? "", query } = addressOf(params);
  if (model.startsWith("claude-")) {
    const api_key = keyOf(params, provider, tell);
    const base_url = base.replace(/(?:\/anthropic)?(?:\/v1)?(?:\/messages)?$/, "/anthropic");
    const upstream = { kind: "anthropic", base_url, api_key };
    return { place: "azure-ai-anthropic", upstream, model, section: {}, api: claude };
  }
  const isFoundry = base.includes("services.ai.azure.com");
  const version = params.text("api_version");
  const upstream = {
    kind: "openai",
    ...(isFoundry && { profile: "azure" }),
    base_url: isFoundry && !/\/(?:models|v1)$/.test(base) ? `${base}/models` : base,
    api_key: keyOf(params, provider, tell),
    query: { ...query, ...(version && { "api-version": version }) },
    headers: headersOf(params),
  };
  return { place: "azure-ai", upstream: stated(upstream), model, section: {}, api: openAi };
}

function serverTarget({ params, name, provider, model: written, tell }: Request): ConvertedTarget {
  const { base, query } = addressOf(params);
  if (name === "gemini" && base !== undefined && !base.endsWith("/openai")) {
    tell("The api_base of gemini is Google's own API; write its OpenAI-compatible one as base_url");
  }
  const host = base === undefined ? undefined : (URL.parse(base)?.hostname ?? base);
  const [knownAs, known] =
    [...providers].find(([, each]) => host !== undefined && each.host === host) ?? [];
  const profile = provider.profile ?? known?.profile;
  const isResponses = written.startsWith("responses/");
  const address = base ?? provider.base;
  // LiteLLM adds the path of Ollama's own API.
  const isShort = profile === "ollama" && address !== undefined && !address.endsWith("/v1");
  const upstream = {
    kind: "openai",
    profile,
    base_url: isShort ? `${address}/v1` : address,
    api_key: keyOf(params, provider, tell),
    headers: headersOf(params),
    query,
    ...(known ?? provider).settings,
  };
  const section = isResponses ? { api: "responses" } : {};
  const model = written.replace(/^responses\//, "");
  // OpenAI's name says nothing of another server.
  const place = knownAs ?? (name === "openai" ? host : undefined) ?? name;
  return { place, upstream: stated(upstream), model, section, api: openAi };
}

interface Address {
  readonly base: string | undefined;
  readonly query: Readonly<Record<string, string>>;
}

/** Without the endpoint, which LiteLLM lets an address have. */
function addressOf(params: Entry): Address {
  const written = params.text("api_base") ?? params.text("base_url");
  const [address = "", search = ""] = written?.split("?") ?? [];
  const base = address
    .replace(/\/+$/, "")
    .replace(
      /\/(?:chat\/completions|completions|embeddings|responses|models\/chat\/completions)$/,
      "",
    );
  return {
    base: base === "" ? undefined : base,
    query: Object.fromEntries(new URLSearchParams(search)),
  };
}

function keyOf(params: Entry, { key }: Provider, tell: Request["tell"]): string | undefined {
  const written = params.text("api_key");
  if (written !== undefined || key === undefined) return written;
  tell(`The key is the usual variable ${key}`);
  return `\${${key}}`;
}

function headersOf(params: Entry): JsonObject {
  const organization = params.text("organization");
  const extra = params.map("extra_headers");
  const written = extra.keys.flatMap((key) => {
    const value = extra.text(key);
    return value === undefined ? [] : [[key, value] as const];
  });
  return {
    ...Object.fromEntries(written),
    ...(organization && { "OpenAI-Organization": organization }),
  };
}

/** Without what says nothing. */
export function stated(fields: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(fields).filter(
      ([, value]) => value !== undefined && !(isObject(value) && Object.keys(value).length === 0),
    ),
  );
}
