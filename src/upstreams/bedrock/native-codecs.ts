import { type Conversation, fieldOf } from "../../domain/chat/conversation.ts";
import { askedTier } from "../../domain/money/service-tier.ts";
import { writeChatRequest } from "../../wires/chat/write-request.ts";
import { writeResponsesRequest } from "../../wires/responses/write-request.ts";
import type { ChatCodec, UpstreamRequest } from "../adapter.ts";
import {
  encodeMessages,
  encodeMessagesCount,
  type MessagesApi,
} from "../shared/messages/encode-messages.ts";
import { createMessagesCodec } from "../shared/messages/messages-codec.ts";
import { type Ask, type ChatServices, createChatCodec } from "../shared/openai/chat-codec.ts";
import { forwardedFields } from "../shared/openai/forwarded-fields.ts";
import { createResponsesCodec } from "../shared/openai/responses-codec.ts";
import { messagesPath } from "./endpoint.ts";
import { type Api, openAiPath, type Service } from "./models/apis.ts";
import type { BedrockModel } from "./models/bedrock-model.ts";

interface NativeParts {
  readonly endpoint: string;
  readonly service: Service;
  readonly modelOf: (alias: string, identifier: string) => BedrockModel;
  readonly services: ChatServices;
}

type Codec = Pick<ChatCodec, "encode" | "encodeStream">;

/**
 * The APIs of OpenAI and Anthropic at `bedrock-runtime` and `bedrock-mantle`. Their streams are
 * server-sent events. Source: Bedrock user guide, "Chat Completions API", "Responses API" and
 * "Messages API".
 */
export function nativeCodecs(parts: NativeParts): Partial<Record<Api, Codec>> {
  const asking = (write: typeof writeChat, path: string): Ask => {
    return (asked, identifier) => {
      const model = parts.modelOf(asked.model, identifier);
      const { conversation, dropped } = withoutUnsupported(asked, model);
      const { body, adjusted } = write(conversation, identifier);
      const prefix = openAiPath(model.settings.baseModel ?? identifier, parts.service);
      const url = `${parts.endpoint}${prefix}${path}`;
      const request = nativePost(url, JSON.stringify(body), guardrailHeaders(model));
      const told = dropped.length === 0 ? adjusted : new Map([...adjusted, ...dropped]);
      return { request, adjusted: told, askedTier: askedTier(body["service_tier"]) };
    };
  };
  const messages = createMessagesCodec((asked, identifier) => {
    const model = parts.modelOf(asked.model, identifier);
    const { body, ...rest } = encodeMessages(asked, model, messagesApi);
    const headers = { ...messagesVersion, ...guardrailHeaders(model) };
    return { ...rest, request: nativePost(`${parts.endpoint}${messagesPath}`, body, headers) };
  }, parts.services.onUnknownFinish);
  return {
    messages,
    "openai-chat": createChatCodec(asking(writeChat, "/chat/completions"), parts.services),
    "openai-responses": createResponsesCodec(asking(writeResponses, "/responses"), parts.services),
  };
}

/** Of `bedrock-mantle` alone. */
export function messagesCountRequest(
  endpoint: string,
  conversation: Conversation,
  model: BedrockModel,
): UpstreamRequest {
  const body = encodeMessagesCount(conversation, model, messagesApi);
  return nativePost(`${endpoint}${messagesPath}/count_tokens`, body, messagesVersion);
}

/** Bedrock refuses strict tools and free names of end users here (reported by LiteLLM's users). */
const messagesApi: MessagesApi = { forwarded: new Set(), strictTools: false, endUsers: false };
const messagesVersion = { "anthropic-version": "2023-06-01" };

function nativePost(url: string, body: string, more: UpstreamRequest["headers"]): UpstreamRequest {
  return { url, method: "POST", headers: { ...headers, ...more }, body };
}

const headers = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
  "accept-encoding": "identity",
};

/** In the body, native APIs ignore or refuse it. */
function guardrailHeaders({ settings: { guardrail } }: BedrockModel): UpstreamRequest["headers"] {
  if (guardrail === undefined) return {};
  return {
    "x-amzn-bedrock-guardrailidentifier": guardrail.identifier,
    "x-amzn-bedrock-guardrailversion": guardrail.version,
    "x-amzn-bedrock-trace": guardrail.trace.toUpperCase(),
  };
}

const chatRules = {
  fields: forwardedFields([]),
  instructionRole: "as_sent",
  flattenTextParts: false,
  dropFields: ["store"],
  maxTokensField: "max_completion_tokens",
  streamUsage: true,
} as const;

function writeChat(conversation: Conversation, model: string) {
  return writeChatRequest(conversation, model, chatRules);
}

/** Items of Codex and other new ones are refused here: BerriAI/litellm#38489. */
function writeResponses(conversation: Conversation, model: string): ReturnType<typeof writeChat> {
  const rules = { forwarded: new Set<string>(), dropFields: [], isStrict: true };
  return writeResponsesRequest(conversation, model, rules);
}

/** Without options that the model refuses; a plan's cap is the target's own. A value of 1 has no effect. */
function withoutUnsupported(
  conversation: Conversation,
  { capabilities, settings }: BedrockModel,
): { readonly conversation: Conversation; readonly dropped: readonly [string, string][] } {
  const { options, ownCap = settings.defaultOutputTokens } = conversation;
  const lacking = (["temperature", "topP"] as const).filter(
    (option) => options[option] !== undefined && !capabilities[option],
  );
  const left = { ...options };
  for (const option of lacking) left[option] = undefined;
  return {
    conversation: { ...conversation, options: left, ownCap },
    dropped: lacking
      .filter((option) => options[option] !== 1)
      .map((option) => [fieldOf(conversation, option), "dropped"]),
  };
}
