import { traceHeaders } from "../../domain/request-trace.ts";
import type { AdapterServices, UpstreamAdapter, UpstreamRequest } from "../adapter.ts";
import { unknownFinishReport } from "../shared/finish-words.ts";
import { createEmbeddingCodec } from "./embeddings.ts";
import { writeChatRequest } from "../../wires/chat/write-request.ts";
import { askedTier } from "../shared/service-tier.ts";
import { createChatCodec } from "../shared/openai/chat-codec.ts";
import { forwardedFields } from "../shared/openai/forwarded-fields.ts";
import { requestIdHeader } from "../shared/openai/read-failure.ts";
import { createAuthorizer, jsonHeaders } from "./authorize.ts";
import type { OpenAiSettings } from "./config.ts";

/** Any server that speaks OpenAI's wire format: vLLM, Ollama, llama.cpp, Azure, OpenAI itself. */
export function createOpenAiAdapter(
  settings: OpenAiSettings,
  { clock, newToolCallId, onTrouble }: AdapterServices,
): UpstreamAdapter {
  const post = requestTo(settings);
  const rules = { ...settings, fields: forwardedFields(settings.forwardFields) };
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
  return {
    chat: {
      origin: ({ model, upstream }) => ({
        wire: "chat",
        model,
        account: `${upstream} ${settings.baseUrl}`,
      }),
      takesChoiceCount: !quirks.has("one_choice"),
      takesImageUrls: !quirks.has("no_image_urls"),
      ...chat,
    },
    embeddings: createEmbeddingCodec({
      settings,
      clock,
      post: (body) => post("/embeddings", body),
    }),
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
