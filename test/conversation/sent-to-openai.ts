import { z } from "zod";
import type { AdjustedFields, Conversation } from "../../src/domain/chat/conversation.ts";
import { type JsonObject, parseObject } from "../../src/domain/json-fields.ts";
import { createOpenAiAdapter } from "../../src/upstreams/openai/adapter.ts";
import { buildSettings, fields } from "../../src/upstreams/openai/config.ts";

export interface SentRequest {
  readonly body: JsonObject;
  readonly adjusted: AdjustedFields;
}

/** What an upstream of kind `openai` gets. `forwarded`: the operator's `forward_fields`. */
export function sentToOpenAi(
  conversation: Conversation,
  forwarded: readonly string[] = [],
): SentRequest {
  const written = { base_url: "http://localhost/v1", forward_fields: forwarded };
  const settings = buildSettings(z.object(fields).parse(written));
  const clock = { now: () => 0, monotonic: () => 0 };
  const services = { clock, newToolCallId: () => "", onTrouble: () => undefined };
  const adapter = createOpenAiAdapter(settings, services as never);
  const encoded = adapter.chat?.encode(conversation, "m");
  return {
    body: parseObject(String(encoded?.request.body)) ?? {},
    adjusted: encoded?.adjusted ?? new Map(),
  };
}
