import { z } from "zod";
import type { AdjustedFields, Conversation } from "../../src/domain/chat/conversation.ts";
import { type JsonObject, parseObject } from "../../src/domain/json-fields.ts";
import { Secret } from "../../src/domain/keys/secret.ts";
import type { AdapterServices, UpstreamAdapter } from "../../src/upstreams/adapter.ts";
import { createAnthropicAdapter } from "../../src/upstreams/anthropic/adapter.ts";
import { createOpenAiAdapter } from "../../src/upstreams/openai/adapter.ts";
import { buildSettings, fields, targetKey } from "../../src/upstreams/openai/config.ts";
import { encodeChecked, modelWith } from "../bedrock/checked-encode.ts";
import { identifiers } from "../support/bedrock-identifiers.ts";

export interface SentRequest {
  readonly body: JsonObject;
  readonly adjusted: AdjustedFields;
}

const services = {
  clock: { now: () => 0, monotonic: () => 0 },
  newToolCallId: () => "",
  onTrouble: () => undefined,
} as unknown as AdapterServices;

/** What an upstream of kind `openai` gets. `forwarded`: the operator's `forward_fields`. */
export function sentToOpenAi(
  conversation: Conversation,
  forwarded: readonly string[] = [],
): SentRequest {
  const written = { base_url: "http://localhost/v1", forward_fields: forwarded };
  const settings = buildSettings(z.object(fields).parse(written));
  return sentTo(createOpenAiAdapter(settings, services), conversation);
}

/** The same of a target that speaks Responses. */
export function sentToResponses(conversation: Conversation): SentRequest {
  const written = { base_url: "http://localhost/v1" };
  const settings = {
    ...buildSettings(z.object(fields).parse(written)),
    responses: new Set([targetKey(conversation.model, "claude-sonnet-4-5")]),
  };
  return sentTo(createOpenAiAdapter(settings, services), conversation);
}

/** What Claude gets of Anthropic itself. */
export function sentToAnthropic(conversation: Conversation): SentRequest {
  const settings = {
    baseUrl: "http://localhost",
    apiKey: new Secret("key"),
    forwardFields: [],
    forwardBetas: [],
    betas: [],
    countTokens: false,
    models: new Map(),
  };
  return sentTo(createAnthropicAdapter(settings, services), conversation);
}

function sentTo({ chat }: UpstreamAdapter, conversation: Conversation): SentRequest {
  const encoded = chat?.encode(conversation, "claude-sonnet-4-5");
  return {
    body: parseObject(String(encoded?.request.body)) ?? {},
    adjusted: encoded?.adjusted ?? new Map(),
  };
}

/** What Claude gets of Bedrock. */
export function sentToBedrock(conversation: Conversation): SentRequest {
  const model = modelWith(identifiers["claude-4-5"]);
  const { body, adjusted } = encodeChecked(conversation, model);
  return { body: { ...body }, adjusted };
}
