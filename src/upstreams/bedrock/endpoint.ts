import facts from "./models/facts.json" with { type: "json" };
import type { BedrockSettings } from "./settings.ts";

/**
 * Address of the provider's runtime API, without a slash at its end. Host names as published in the
 * provider's endpoint rules for `bedrock-runtime`.
 */
export function endpointOf({
  region,
  endpoint,
  useFips,
  service: address,
}: Pick<BedrockSettings, "region" | "endpoint" | "useFips" | "service">): string {
  if (endpoint !== undefined) return endpoint.replace(/\/+$/, "");
  if (address === "mantle") return `https://bedrock-mantle.${region}.api.aws`;
  const service = useFips ? "bedrock-runtime-fips" : "bedrock-runtime";
  return `https://${service}.${region}.${domainOf(region)}`;
}

/** Regions with some prefixes are in partitions with their own domains. */
function domainOf(region: string): string {
  const domains = Object.entries(facts.partition_domains);
  return domains.find(([prefix]) => region.startsWith(prefix))?.[1] ?? "amazonaws.com";
}

/** A model's identifier as one segment of a path: `:` and the `/` of ARNs are encoded. */
export function encodePathSegment(text: string): string {
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, percentEncode);
}

/** One ASCII character that `encodeURIComponent` does not encode, such as `!`. */
export function percentEncode(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}

/** Of the Messages API, for Claude. */
export const messagesPath = "/anthropic/v1/messages";

/** Whether an address is that of an API of OpenAI or Anthropic. */
export function isNativePath(url: string): boolean {
  return /\/v1\/(?:chat\/completions|responses|messages)(?:\/count_tokens)?$/.test(url);
}
