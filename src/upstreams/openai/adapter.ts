import { traceHeaders } from "../../domain/request-trace.ts";
import type { AdapterServices, UpstreamAdapter, UpstreamRequest } from "../adapter.ts";
import { unknownFinishReport } from "../shared/finish-words.ts";
import { createEmbeddingCodec } from "./embeddings.ts";
import { writeChatRequest } from "../../wires/chat/write-request.ts";
import { askedTier } from "../../domain/money/service-tier.ts";
import { createChatCodec } from "../shared/openai/chat-codec.ts";
import { forwardedFields } from "../shared/openai/forwarded-fields.ts";
import { requestIdHeader } from "../shared/openai/read-failure.ts";
import { createAuthorizer, jsonHeaders } from "./authorize.ts";
import type { Conversation } from "../../domain/chat/conversation.ts";
import { writeResponsesRequest } from "../../wires/responses/write-request.ts";
import { createResponsesCodec, ownFields } from "../shared/openai/responses-codec.ts";
import { serverProbes } from "./probes.ts";
import { type OpenAiSettings, targetKey } from "./config.ts";

/** With what the targets of the upstream say. */
export type TargetedSettings = OpenAiSettings & { readonly responses?: ReadonlySet<string> };

/** Any server that speaks OpenAI's wire format: vLLM, Ollama, llama.cpp, Azure, OpenAI itself. */
export function createOpenAiAdapter(
  settings: TargetedSettings,
  { clock, newToolCallId, onTrouble }: AdapterServices,
): UpstreamAdapter {
  const post = requestTo(settings);
  const rules = { ...settings, fields: forwardedFields(settings.forwardFields) };
  const responsesRules = {
    forwarded: ownFields.union(new Set(settings.forwardFields)),
    dropFields: settings.dropFields,
    isStrict: false,
  };
  const onUnknownFinish = unknownFinishReport(onTrouble);
  const { quirks } = settings;
  const isAlwaysStreamed = quirks.has("streams_only");
  const chat = createChatCodec(
    (conversation, model) => {
      const asked = isAlwaysStreamed ? { ...conversation, isStreamed: true } : conversation;
      const { body, adjusted } = writeChatRequest(asked, model, rules);
      const request = post("/chat/completions", JSON.stringify(body));
      return { request, adjusted, askedTier: askedTier(body["service_tier"]) };
    },
    { newToolCallId, onUnknownFinish, isAnsweredWhole: quirks.has("ignores_stream") },
  );
  const responses = createResponsesCodec(
    (conversation, model) => {
      const { body, adjusted } = writeResponsesRequest(conversation, model, responsesRules);
      const request = post("/responses", JSON.stringify(body));
      return { request, adjusted, askedTier: askedTier(body["service_tier"]) };
    },
    { newToolCallId, onUnknownFinish },
  );
  const isByResponses = (alias: string, model: string): boolean =>
    settings.responses?.has(targetKey(alias, model)) === true;
  const codecFor = (request: Conversation, model: string): typeof chat =>
    isByResponses(request.model, model) ? responses : chat;
  return {
    chat: {
      origin: ({ alias, model, upstream }) => ({
        wire: isByResponses(alias, model) ? "responses" : "chat",
        model,
        account: `${upstream} ${settings.baseUrl}`,
      }),
      takesSessions: settings.sessionCacheKey,
      takesChoiceCount: !quirks.has("one_choice"),
      takesImageUrls: !quirks.has("no_image_urls"),
      encode: (request, model) => codecFor(request, model).encode(request, model),
      encodeStream: (request, model) => codecFor(request, model).encodeStream(request, model),
    },
    embeddings: createEmbeddingCodec({
      settings,
      clock,
      post: (body) => post("/embeddings", body),
    }),
    probes: (alias, model) =>
      isByResponses(alias, model) ? [] : serverProbes(settings, model, post),
    provider: "openai",
    traceHeaders,
    requestIdHeader,
    ...createAuthorizer(settings, { clock, onTrouble }),
  };
}

function requestTo(settings: OpenAiSettings): (path: string, body: string) => UpstreamRequest {
  const query = new URLSearchParams(settings.query).toString();
  const suffix = query === "" ? "" : `?${query}`;
  return (path, body) => ({
    url: `${settings.baseUrl}${path}${suffix}`,
    method: "POST",
    headers: jsonHeaders,
    body,
  });
}
