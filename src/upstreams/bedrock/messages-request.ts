import type { Conversation } from "../../domain/chat/conversation.ts";
import type { UpstreamRequest } from "../adapter.ts";
import {
  type EncodedMessages,
  encodeMessages,
  encodeMessagesCount,
  type MessagesApi,
} from "../shared/messages/encode-messages.ts";
import { messagesPath } from "./endpoint.ts";
import type { BedrockModel } from "./models/bedrock-model.ts";

/** Bedrock refuses strict tools and free names of end users here (reported by LiteLLM's users). */
const api: MessagesApi = { forwarded: new Set(), strictTools: false, endUsers: false };

/**
 * A request of the Messages API of `bedrock-runtime`, for Claude. Source: Bedrock user guide,
 * "Messages API"; its streams are server-sent events.
 */
export function messagesRequest(
  endpoint: string,
  conversation: Conversation,
  model: BedrockModel,
): Omit<EncodedMessages, "body"> & { readonly request: UpstreamRequest } {
  const { body, ...rest } = encodeMessages(conversation, model, api);
  const sent = { ...headers, ...guardrailHeaders(model) };
  return { ...rest, request: post(`${endpoint}${messagesPath}`, body, sent) };
}

/** Of `bedrock-mantle` alone. */
export function messagesCountRequest(
  endpoint: string,
  conversation: Conversation,
  model: BedrockModel,
): UpstreamRequest {
  const body = encodeMessagesCount(conversation, model, api);
  return post(`${endpoint}${messagesPath}/count_tokens`, body, headers);
}

function post(url: string, body: string, sent: UpstreamRequest["headers"]): UpstreamRequest {
  return { url, method: "POST", headers: sent, body };
}

const headers = {
  "content-type": "application/json",
  "accept-encoding": "identity",
  "anthropic-version": "2023-06-01",
};

/** In the body, native APIs ignore or refuse it. */
export function guardrailHeaders({
  settings: { guardrail },
}: BedrockModel): UpstreamRequest["headers"] {
  if (guardrail === undefined) return {};
  return {
    "x-amzn-bedrock-guardrailidentifier": guardrail.identifier,
    "x-amzn-bedrock-guardrailversion": guardrail.version,
    "x-amzn-bedrock-trace": guardrail.trace.toUpperCase(),
  };
}
