import { traceHeaders } from "../../domain/request-trace.ts";
import type { AdapterServices, UpstreamAdapter, UpstreamRequest } from "../adapter.ts";
import { unknownFinishReport } from "../shared/finish-words.ts";
import { CallOrigins } from "./call-origin.ts";
import { decodeChat } from "./decode-chat.ts";
import { usageIn } from "../shared/usage-in.ts";
import { readUsage } from "./read-answer.ts";
import { ChatStreamDecoder } from "./stream/decode-chat-stream.ts";
import { createEmbeddingCodec } from "./embeddings/embedding-codec.ts";
import { encodeChat } from "./encode-chat.ts";
import { forwardedFields } from "./forwarded-fields.ts";
import { createReadFailure, requestIdHeader } from "./read-failure.ts";
import type { OpenAiSettings } from "./settings.ts";

/** Any server that speaks OpenAI's wire format: vLLM, Ollama, llama.cpp, Azure, OpenAI itself. */
export function createOpenAiAdapter(
  settings: OpenAiSettings,
  { clock, newToolCallId, onTrouble }: AdapterServices,
): UpstreamAdapter {
  const post = requestTo(settings);
  const own = { ...credential(settings), ...settings.headers };
  const origins = new CallOrigins(settings.baseUrl);
  const chatSettings = { ...settings, origins, fields: forwardedFields(settings.forwardFields) };
  const onUnknownFinish = unknownFinishReport(onTrouble);
  const answerServices = { newToolCallId, onUnknownFinish, origins };
  return {
    chat: {
      takesChoiceCount: true,
      takesImageUrls: true,
      encode: (request, model) => ({
        request: post("/chat/completions", encodeChat(request, model, chatSettings)),
        decode: ({ body }) => decodeChat(body, answerServices),
        usageIn: (body) => readUsage(usageIn(body)),
      }),
      encodeStream: (request, model) => ({
        request: post(
          "/chat/completions",
          encodeChat({ ...request, stream: true }, model, chatSettings),
        ),
        newDecoder: (limits) => new ChatStreamDecoder(answerServices, limits),
      }),
    },
    embeddings: createEmbeddingCodec({
      settings,
      clock,
      post: (body) => post("/embeddings", body),
    }),
    provider: "openai",
    traceHeaders,
    requestIdHeader,
    authorize: (request) => ({ ...request, headers: { ...request.headers, ...own } }),
    readFailure: createReadFailure(clock),
  };
}

function requestTo(settings: OpenAiSettings): (path: string, body: string) => UpstreamRequest {
  const query = new URLSearchParams(settings.query).toString();
  const suffix = query === "" ? "" : `?${query}`;
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "accept-encoding": "identity",
  };
  return (path, body) => ({
    url: `${settings.baseUrl}${path}${suffix}`,
    method: "POST",
    headers,
    body,
  });
}

function credential({ apiKey, apiKeyHeader }: OpenAiSettings): Readonly<Record<string, string>> {
  if (apiKey === undefined) return {};
  const value = apiKey.reveal();
  return apiKeyHeader === "api-key" ? { "api-key": value } : { authorization: `Bearer ${value}` };
}
