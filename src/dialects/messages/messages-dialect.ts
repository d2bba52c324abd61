import type { Conversation } from "../../domain/chat/conversation.ts";
import { GatewayError, type LimitsLeft } from "../../domain/errors/gateway-error.ts";
import type { JsonObject } from "../../domain/json-fields.ts";
import { bearer, type CredentialForm } from "../../domain/keys/api-key.ts";
import { usesOf } from "../../domain/limits/limit-scope.ts";
import type { KeyCall } from "../../edge/dispatch/route.ts";
import type { Dialect } from "../../edge/replies/error-reply.ts";
import { readMessagesRequest } from "../../wires/messages/read-request.ts";
import { writeMessage } from "../../wires/messages/write-answer.ts";
import { MessageStreamWriter } from "../../wires/messages/write-stream.ts";
import type { ChatSurface } from "../chat-handler.ts";
import type { CountSurface } from "../count-tokens.ts";
import { checkCountRequest, checkMessagesRequest } from "./check-request.ts";
import { restoreInputs } from "../request/exact-integers.ts";
import { writeMessagesError } from "./write-error.ts";

/** `POST /v1/messages` */
export const messages: ChatSurface = {
  endpoint: "messages",
  hasPing: true,
  read({ value, text }, { headers }) {
    const body = restoreInputs(checkMessagesRequest(value), text);
    return {
      conversation: conversationOf(body, headers),
      body: (answer, about) => writeMessage(answer, { ...about, id: messageId(about.id) }),
      openWriter: (about) => new MessageStreamWriter({ ...about, id: messageId(about.id) }),
    };
  },
};

/** `POST /v1/messages/count_tokens` */
export const messageTokens: CountSurface = {
  read: ({ value, text }, { headers }) => ({
    conversation: conversationOf(restoreInputs(checkCountRequest(value), text), headers),
  }),
  body: (inputTokens) => ({ input_tokens: inputTokens }),
};

/** Refuses another endpoint below `/v1/messages`, such as batches, as Claude Code expects it. */
export function refuseEndpoint({ request }: KeyCall): never {
  const { pathname } = new URL(request.url);
  throw new GatewayError("not_supported", {
    message:
      `${request.method} ${pathname.slice(0, 200)} is not served here. Use POST /v1/messages or ` +
      "POST /v1/messages/count_tokens.",
    headers: { "x-should-retry": "false" },
  });
}

/** Throws 400 for a conversation without anything to answer. */
function conversationOf(body: JsonObject, headers: Pick<Headers, "get">): Conversation {
  const conversation = readMessagesRequest(body);
  if (!conversation.turns.some(({ role }) => role === "user" || role === "assistant")) {
    throw new GatewayError("empty_array", {
      message: "At least one message with content is required.",
      param: "messages",
    });
  }
  const betas = headers.get("anthropic-beta")?.split(",");
  return { ...conversation, betas: betas?.flatMap((beta) => beta.trim() || []) };
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

export const messagesDialect: Dialect = {
  credential: apiKeyOrBearer,
  endpoints: { chat: "/v1/messages", embedding: "/v1/embeddings", list: "/v1/models" },
  idHeader: "request-id",
  limitHeaders: messagesLimitHeaders,
  error: writeMessagesError,
  errorFrame: (error, requestId) =>
    `event: error\ndata: ${writeMessagesError(error, requestId).body}\n\n`,
};

/** Anthropic's headers of the limits. Without a limit, none of it. */
function messagesLimitHeaders({ state, nowMs, freeAtMs }: LimitsLeft): Record<string, string> {
  const { requests, tokens } = usesOf(state);
  return {
    ...(freeAtMs !== undefined && {
      "retry-after": String(Math.max(1, Math.ceil((freeAtMs - nowMs) / 1_000))),
    }),
    ...(requests.limit !== Infinity && {
      "anthropic-ratelimit-requests-limit": String(requests.limit),
      "anthropic-ratelimit-requests-remaining": String(requests.remaining),
      "anthropic-ratelimit-requests-reset": timeOf(nowMs + requests.resetMs),
    }),
    "anthropic-ratelimit-tokens-limit": String(tokens.limit),
    "anthropic-ratelimit-tokens-remaining": String(tokens.remaining),
    "anthropic-ratelimit-tokens-reset": timeOf(nowMs + tokens.resetMs),
  };
}

/** RFC 3339 in whole seconds, rounded up. */
function timeOf(ms: number): string {
  return `${new Date(Math.ceil(ms / 1000) * 1000).toISOString().slice(0, 19)}Z`;
}
