import { type Conversation, fieldOf } from "../../domain/chat/conversation.ts";
import { writeChatRequest } from "../../wires/chat/write-request.ts";
import { writeResponsesRequest } from "../../wires/responses/write-request.ts";
import type { ChatCodec, UpstreamRequest } from "../adapter.ts";
import { type Ask, type ChatServices, createChatCodec } from "../shared/openai/chat-codec.ts";
import { forwardedFields } from "../shared/openai/forwarded-fields.ts";
import { createResponsesCodec } from "../shared/openai/responses-codec.ts";
import { askedTier } from "../../domain/money/service-tier.ts";
import { guardrailHeaders } from "./messages-request.ts";
import { type Api, openAiPath, type Service } from "./models/apis.ts";
import type { BedrockModel } from "./models/bedrock-model.ts";

interface OpenAiParts {
  readonly endpoint: string;
  readonly service: Service;
  readonly modelOf: (alias: string, identifier: string) => BedrockModel;
  readonly services: ChatServices;
}

type Codec = Pick<ChatCodec, "encode" | "encodeStream">;

/**
 * OpenAI's APIs of `bedrock-runtime` and `bedrock-mantle`. Source: Bedrock user guide, "Chat
 * Completions API" and "Responses API".
 */
export function openAiCodecs(parts: OpenAiParts): Partial<Record<Api, Codec>> {
  const asking = (write: typeof writeChat, path: string): Ask => {
    return (asked, identifier) => {
      const model = parts.modelOf(asked.model, identifier);
      const { conversation, dropped } = withoutUnsupported(asked, model);
      const { body, adjusted } = write(conversation, identifier);
      const prefix = openAiPath(model.settings.baseModel ?? identifier, parts.service);
      const request: UpstreamRequest = {
        url: `${parts.endpoint}${prefix}${path}`,
        method: "POST",
        headers: { ...headers, ...guardrailHeaders(model) },
        body: JSON.stringify(body),
      };
      const told = dropped.length === 0 ? adjusted : new Map([...adjusted, ...dropped]);
      return { request, adjusted: told, askedTier: askedTier(body["service_tier"]) };
    };
  };
  return {
    "openai-chat": createChatCodec(asking(writeChat, "/chat/completions"), parts.services),
    "openai-responses": createResponsesCodec(asking(writeResponses, "/responses"), parts.services),
  };
}

const headers = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
  "accept-encoding": "identity",
};

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
