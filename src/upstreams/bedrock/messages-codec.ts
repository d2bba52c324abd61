import type { Conversation } from "../../domain/chat/conversation.ts";
import { usageIn } from "../../domain/json-fields.ts";
import type { ChatCodec, UpstreamRequest } from "../adapter.ts";
import type { OnUnknownFinish } from "../shared/finish-words.ts";
import { decodeMessages, MessagesStreamDecoder } from "../shared/messages/decode-messages.ts";
import { encodeMessages, type MessagesApi } from "../shared/messages/encode-messages.ts";
import { messagesUsage } from "../shared/messages/messages-answer.ts";
import { messagesPath } from "./endpoint.ts";
import type { BedrockModel } from "./models/bedrock-model.ts";

/** Bedrock refuses strict tools and free names of end users here (reported by LiteLLM's users). */
const api: MessagesApi = { forwarded: new Set(), strictTools: false, endUsers: false };

/**
 * The Messages API of `bedrock-runtime`, for Claude. Source: Bedrock user guide, "Messages API"; its
 * streams are server-sent events.
 */
export function createMessagesCodec(
  endpoint: string,
  onUnknownFinish: OnUnknownFinish,
): {
  encode(request: Conversation, model: BedrockModel): ReturnType<ChatCodec["encode"]>;
  encodeStream(request: Conversation, model: BedrockModel): ReturnType<ChatCodec["encodeStream"]>;
} {
  const ask = (request: Conversation, model: BedrockModel) => {
    const { body, context, adjusted } = encodeMessages(request, model, api);
    const sent: UpstreamRequest = {
      url: `${endpoint}${messagesPath}`,
      method: "POST",
      headers: { ...headers, ...guardrailHeaders(model) },
      body,
    };
    return { encoded: { request: sent, adjusted }, reader: { context, onUnknownFinish } };
  };
  return {
    encode(request, model) {
      const { encoded, reader } = ask({ ...request, isStreamed: false }, model);
      return {
        ...encoded,
        decode: (answer) => decodeMessages(answer, reader),
        usageIn: (body) => messagesUsage(usageIn(body)),
      };
    },
    encodeStream(request, model) {
      const { encoded, reader } = ask({ ...request, isStreamed: true }, model);
      return { ...encoded, newDecoder: (limits) => new MessagesStreamDecoder(reader, limits) };
    },
  };
}

const headers = {
  "content-type": "application/json",
  "accept-encoding": "identity",
  "anthropic-version": "2023-06-01",
};

/** In the body, this API refuses it. */
function guardrailHeaders({ settings: { guardrail } }: BedrockModel): UpstreamRequest["headers"] {
  if (guardrail === undefined) return {};
  return {
    "x-amzn-bedrock-guardrailidentifier": guardrail.identifier,
    "x-amzn-bedrock-guardrailversion": guardrail.version,
    "x-amzn-bedrock-trace": guardrail.trace.toUpperCase(),
  };
}
