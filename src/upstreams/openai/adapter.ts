import { traceHeaders } from "../../domain/request-trace.ts";
import type {
  AdapterServices,
  EncodedRequest,
  UpstreamAdapter,
  UpstreamRequest,
} from "../adapter.ts";
import { unknownFinishReport } from "../shared/finish-words.ts";
import type { AnswerServices } from "./stream/tool-call-tracker.ts";
import { usageIn } from "../../domain/json-fields.ts";
import { readUsage } from "./read-answer.ts";
import { ChatStreamDecoder } from "./stream/decode-chat-stream.ts";
import { createEmbeddingCodec } from "./embeddings.ts";
import { writeChatRequest } from "../../wires/chat/write-request.ts";
import type { Conversation } from "../../domain/chat/conversation.ts";
import { forwardedFields } from "./forwarded-fields.ts";
import { createReadFailure, requestIdHeader } from "./read-failure.ts";
import type { OpenAiSettings } from "./config.ts";
import type { ChatEvent, ChatResult } from "../../domain/chat/answer.ts";
import { collectAnswer, collectStream } from "../shared/collect-answer.ts";
import { isJson } from "../shared/whole-body.ts";
import { AnswerReader } from "./stream/answer-reader.ts";

/** Any server that speaks OpenAI's wire format: vLLM, Ollama, llama.cpp, Azure, OpenAI itself. */
export function createOpenAiAdapter(
  settings: OpenAiSettings,
  { clock, newToolCallId, onTrouble }: AdapterServices,
): UpstreamAdapter {
  const post = requestTo(settings);
  const own = { ...credential(settings), ...settings.headers };
  // One object for most requests, whose head is then written once.
  const authorized = { ...jsonHeaders, ...own };
  const rules = { ...settings, fields: forwardedFields(settings.forwardFields) };
  const ask = (conversation: Conversation, model: string): AskedChat => {
    const { body, adjusted } = writeChatRequest(conversation, model, rules);
    return { request: post("/chat/completions", JSON.stringify(body)), adjusted };
  };
  const onUnknownFinish = unknownFinishReport(onTrouble);
  const services = { newToolCallId, onUnknownFinish };
  const forChat = { ...services, signsByThoughts: false };
  const forOthers = { ...services, signsByThoughts: true };
  const servicesFor = ({ wire }: Conversation): AnswerServices =>
    wire === "chat" ? forChat : forOthers;
  return {
    chat: {
      origin: ({ model, upstream }) => ({
        wire: "chat",
        model,
        account: `${upstream} ${settings.baseUrl}`,
      }),
      takesChoiceCount: true,
      takesImageUrls: true,
      encode: (request, model) => ({
        ...ask(request, model),
        decode: ({ body }) => decodeChat(body, servicesFor(request)),
        usageIn: (body) => readUsage(usageIn(body)),
      }),
      encodeStream: (request, model) => ({
        ...ask({ ...request, isStreamed: true }, model),
        newDecoder: (limits) => new ChatStreamDecoder(servicesFor(request), limits),
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
    authorize: (request) => {
      const { headers } = request;
      return { ...request, headers: headers === jsonHeaders ? authorized : { ...headers, ...own } };
    },
    readFailure: createReadFailure(clock),
  };
}

type AskedChat = Pick<EncodedRequest<unknown>, "request" | "adjusted">;

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

const jsonHeaders: UpstreamRequest["headers"] = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
  "accept-encoding": "identity",
};

function credential({ apiKey, apiKeyHeader }: OpenAiSettings): Readonly<Record<string, string>> {
  if (apiKey === undefined) return {};
  const value = apiKey.reveal();
  return apiKeyHeader === "api-key" ? { "api-key": value } : { authorization: `Bearer ${value}` };
}

const utf8 = new TextDecoder();

/**
 * Reads the answer to a request for a whole one: a `chat.completion`, or a stream in its place.
 * Throws `UpstreamFailure` for anything else.
 */
function decodeChat(body: Uint8Array, services: AnswerServices): ChatResult {
  if (!isJson(body)) {
    return collectStream((limits) => new ChatStreamDecoder(services, limits), body);
  }
  const events: ChatEvent[] = [];
  new AnswerReader(services).readWhole(utf8.decode(body), events);
  return collectAnswer(events);
}
