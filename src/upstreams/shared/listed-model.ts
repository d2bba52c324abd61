import type { ListedModel } from "../kind.ts";

/** Providers whose own addresses have their list prices. */
const hosts: Readonly<Record<string, string>> = {
  "api.openai.com": "openai",
  "api.anthropic.com": "anthropic",
};

/** Bedrock's endpoints for the wires of other providers. */
const ofBedrock =
  /^(?:bedrock-mantle\.([a-z0-9-]+)\.api\.aws|bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com)$/;

/** A model behind a base URL: of the provider that its host names, or of the host itself. */
export function listedAtUrl(baseUrl: string, model: string): ListedModel {
  const { hostname } = new URL(baseUrl);
  const [, mantle, runtime] = ofBedrock.exec(hostname) ?? [];
  const region = mantle ?? runtime;
  if (region !== undefined) return listedAtBedrock(model, region);
  return { provider: hosts[hostname] ?? hostname, model, scopes: ["any"] };
}

const prefixed = /^(global|us-gov|us|eu|ca|jp|au|apac|in)\.(.+)$/;

/** `identifier`: of a foundation model or of a system profile. */
export function listedAtBedrock(identifier: string, region: string): ListedModel {
  const [, geography = geographyOf(region), model = identifier] = prefixed.exec(identifier) ?? [];
  const isPrefixed = model !== identifier;
  return {
    provider: "bedrock",
    // The size of a context window may follow: `...-v1:0:200k`.
    model: model.replace(/:\d+k$/, ""),
    scopes: [...(isPrefixed ? [] : [region]), geography, ...widerScopes(geography), "any"],
  };
}

/**
 * `regional`: all but `global`; `commercial`: that, too. The partitions of governments and of China
 * have prices of their own.
 */
function widerScopes(geography: string): readonly string[] {
  if (geography === "global") return ["commercial"];
  return /^(us-gov|cn|us-iso|eu-iso)/.test(geography) ? [] : ["regional", "commercial"];
}

function geographyOf(region: string): string {
  if (region.startsWith("ap-")) return "apac";
  return /^(us-gov|us-iso|eu-iso|[a-z]+)/.exec(region)?.[0] ?? region;
}
