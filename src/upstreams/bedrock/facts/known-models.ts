import { suggest } from "../../../domain/suggest.ts";
import { foundationModelOf } from "../models/model-families.ts";

/** Foundation models that are named often, to recognise misspelt ones. Others are as good. */
const knownModels: readonly string[] = [
  "amazon.nova-2-lite-v1:0",
  "amazon.nova-lite-v1:0",
  "amazon.nova-micro-v1:0",
  "amazon.nova-premier-v1:0",
  "amazon.nova-pro-v1:0",
  "amazon.titan-embed-image-v1",
  "amazon.titan-embed-text-v1",
  "amazon.titan-embed-text-v2:0",
  "anthropic.claude-haiku-4-5-20251001-v1:0",
  "anthropic.claude-haiku-5-5",
  "anthropic.claude-opus-4-6-v1",
  "anthropic.claude-opus-4-7",
  "anthropic.claude-opus-4-8",
  "anthropic.claude-opus-5",
  "anthropic.claude-opus-5-5",
  "anthropic.claude-sonnet-4-5-20250929-v1:0",
  "anthropic.claude-sonnet-4-6",
  "anthropic.claude-sonnet-5-5",
  "cohere.embed-english-v3",
  "cohere.embed-multilingual-v3",
  "cohere.embed-v4:0",
  "deepseek.r1-v1:0",
  "meta.llama3-1-70b-instruct-v1:0",
  "meta.llama3-3-70b-instruct-v1:0",
  "meta.llama3-70b-instruct-v1:0",
  "meta.llama3-8b-instruct-v1:0",
  "meta.llama4-maverick-17b-instruct-v1:0",
  "meta.llama4-scout-17b-instruct-v1:0",
  "mistral.mistral-7b-instruct-v0:2",
  "mistral.mistral-large-2402-v1:0",
  "mistral.mistral-large-2407-v1:0",
  "mistral.mixtral-8x7b-instruct-v0:1",
  "openai.gpt-oss-120b-1:0",
  "openai.gpt-oss-20b-1:0",
  "qwen.qwen3-32b-v1:0",
];

/** The identifier that an unknown one was probably meant to be, with the same prefix. */
export function meantModel(identifier: string): string | undefined {
  const written = foundationModelOf(identifier);
  if (written === undefined) return undefined;
  const prefix = identifier.slice(0, identifier.length - written.length);
  // The provider's name is often left out.
  const named = new Map(knownModels.map((model) => [model.replace(/^[a-z0-9]+\./, ""), model]));
  const meant = named.get(suggest(written, named.keys()) ?? "") ?? suggest(written, knownModels);
  return meant === undefined || meant === written ? undefined : prefix + meant;
}

/** A known identifier that begins like this one, which lacks its version. */
export function completeModel(identifier: string): string | undefined {
  const written = foundationModelOf(identifier);
  if (written === undefined || knownModels.includes(written)) return undefined;
  const whole = knownModels.find((model) =>
    /^(?:-\d{8})?-v?\d+(?::\d+)?$|^:\d+$/.test(
      model.startsWith(written) ? model.slice(written.length) : "",
    ),
  );
  return whole && identifier.slice(0, identifier.length - written.length) + whole;
}
