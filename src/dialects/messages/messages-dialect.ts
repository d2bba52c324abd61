import type { Conversation } from "../../domain/chat/conversation.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { JsonObject } from "../../domain/json-fields.ts";
import { bearer, type CredentialForm } from "../../domain/keys/api-key.ts";
import type { Dialect } from "../../edge/replies/error-reply.ts";
import { readMessagesRequest } from "../../wires/messages/read-request.ts";
import { writeMessage } from "../../wires/messages/write-answer.ts";
import { MessageStreamWriter } from "../../wires/messages/write-stream.ts";
import type { ChatSurface } from "../chat-handler.ts";
import type { CountSurface } from "../count-tokens.ts";
import { checkCountRequest, checkMessagesRequest } from "./check-request.ts";
import { restoreInputs } from "../request/exact-integers.ts";
import { messagesLimitHeaders } from "./limit-headers.ts";
import { writeMessagesError } from "./write-error.ts";

/** `POST /v1/messages` */
export const messages: ChatSurface = {
  endpoint: "messages",
  hasPing: true,
  read({ value, text }, { headers }) {
    const body = restoreInputs(checkMessagesRequest(value), text);
    return {
      conversation: conversationOf(body, headers),
      body: (answer, about) => writeMessage(answer, { ...about, id: messageId(about.callId) }),
      openWriter: (about) => new MessageStreamWriter({ ...about, id: messageId(about.callId) }),
    };
  },
};

/** `POST /v1/messages/count_tokens` */
export const messageTokens: CountSurface = {
  read: ({ value, text }, { headers }) =>
    conversationOf(restoreInputs(checkCountRequest(value), text), headers),
  body: (inputTokens) => ({ input_tokens: inputTokens }),
};

function conversationOf(body: JsonObject, headers: Pick<Headers, "get">): Conversation {
  const conversation = requireContent(readMessagesRequest(body));
  return { ...conversation, betas: betasIn(headers.get("anthropic-beta")) };
}

function betasIn(header: string | null): readonly string[] | undefined {
  if (header === null) return undefined;
  return header.split(",").flatMap((beta) => beta.trim() || []);
}

/** Throws 400 for a conversation without anything to answer. */
function requireContent(conversation: Conversation): Conversation {
  const { turns } = conversation;
  if (turns.some(({ role }) => role === "user" || role === "assistant")) return conversation;
  throw new GatewayError("empty_array", {
    message: "At least one message with content is required.",
    param: "messages",
  });
}

/** Claude Code looks for the prefix. */
function messageId(callId: string): string {
  return `msg_${callId.slice(4)}`;
}

/** `x-api-key: KEY`, or else `Authorization: Bearer KEY`, which newer SDKs send. */
const apiKeyOrBearer: CredentialForm = {
  read(headers) {
    const key = headers.get("x-api-key");
    return key === null || key === "" ? bearer.read(headers) : key;
  },
  name: "x-api-key header, or Authorization header with a Bearer key",
  header: "x-api-key header (x-api-key: YOUR_KEY)",
  challenge: {},
};

export const anthropic: Dialect = {
  credential: apiKeyOrBearer,
  endpoints: { chat: "/v1/messages", embedding: "/v1/embeddings", list: "/v1/models" },
  idHeader: "request-id",
  limitHeaders: messagesLimitHeaders,
  error: writeMessagesError,
  errorFrame: (error, requestId) =>
    `event: error\ndata: ${writeMessagesError(error, requestId).body}\n\n`,
};
