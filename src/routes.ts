import { chatCompletions, openAiDialect } from "./dialects/openai-dialect.ts";
import { createChatHandler } from "./dialects/chat-handler.ts";
import { createCountTokens } from "./dialects/count-tokens.ts";
import { listMessagesModels, retrieveMessagesModel } from "./dialects/messages/list-models.ts";
import {
  messages,
  messagesDialect,
  messageTokens,
  refuseEndpoint,
} from "./dialects/messages/messages-dialect.ts";
import { createEmbeddings } from "./dialects/embeddings/embeddings.ts";
import { createKeyUsage, type ReadKeyUse } from "./dialects/key-usage.ts";
import type { HandlerParts } from "./dialects/read-call.ts";
import { listModels, retrieveModel } from "./dialects/models/models.ts";
import { createResponses, createResponseTokens } from "./dialects/responses/responses.ts";
import {
  createStoredRoutes,
  refuseAction,
  refuseUpgrade,
} from "./dialects/responses/other-routes.ts";
import { createReadiness, health } from "./edge/shutdown.ts";
import type { Route } from "./edge/dispatch/route.ts";

export interface DataRouteOptions extends HandlerParts {
  readonly readUse: ReadKeyUse;
  /** Undefined when the process can serve. */
  readonly whyNotReady: () => string | undefined;
  /** What a gateway that can serve lacks; undefined: nothing. */
  readonly howDegraded: () => string | undefined;
}

const call = { access: "key", dialect: openAiDialect, counts: "call" } as const;
const listing = { ...call, counts: "listing" } as const;
const message = { access: "key", dialect: messagesDialect, counts: "call" } as const;
const messageListing = { ...message, counts: "listing" } as const;

/** Clients of Anthropic's API send it, with any version. */
const versionHeader = "anthropic-version";

const modelRoutes: readonly Route[] = (
  [
    ["/v1/models", listModels, listMessagesModels],
    ["/v1/models/*", retrieveModel, retrieveMessagesModel],
  ] as const
).map(([path, handle, handleMessages]) => {
  const shape = { method: "GET", path } as const;
  const route = { ...messageListing, ...shape, handle: handleMessages };
  return { ...listing, ...shape, handle, whenSent: { header: versionHeader, route } };
});

function messageRoutes(options: HandlerParts): readonly Route[] {
  const chat = createChatHandler(messages, options);
  const count = createCountTokens(messageTokens, options);
  const path = "/v1/messages";
  const refused = { ...messageListing, path: `${path}/*`, handle: refuseEndpoint };
  return [
    { ...message, method: "POST", path, handle: chat },
    { ...message, counts: "count", method: "POST", path: `${path}/count_tokens`, handle: count },
    { ...refused, method: "GET" },
    { ...refused, method: "POST" },
    { ...refused, method: "DELETE" },
  ];
}

/** Every path of the data listener. Each also answers without `/v1` and with a trailing slash. */
export function dataRoutes(options: DataRouteOptions): readonly Route[] {
  const chat = createChatHandler(chatCompletions, options);
  const readiness = createReadiness(options.whyNotReady, options.howDegraded);
  return [
    { ...call, method: "POST", path: "/v1/chat/completions", handle: chat },
    ...responseRoutes(options),
    { ...call, method: "POST", path: "/v1/embeddings", handle: createEmbeddings(options) },
    ...modelRoutes,
    { ...listing, method: "GET", path: "/v1/usage", handle: createKeyUsage(options.readUse) },
    ...messageRoutes(options),
    { method: "GET", path: "/healthz", access: "public", handle: health },
    { method: "GET", path: "/readyz", access: "public", handle: readiness },
  ];
}

function responseRoutes(options: HandlerParts): readonly Route[] {
  const path = "/v1/responses";
  const below = `${path}/*`;
  const stored = createStoredRoutes(options);
  const count = createCountTokens(createResponseTokens(options), options);
  return [
    { ...call, method: "POST", path, handle: createChatHandler(createResponses(options), options) },
    { ...call, counts: "count", method: "POST", path: `${path}/input_tokens`, handle: count },
    { ...listing, method: "GET", path, handle: refuseUpgrade, isUnlisted: true },
    { ...listing, method: "GET", path: below, handle: stored.retrieve },
    { ...listing, method: "DELETE", path: below, handle: stored.remove },
    { ...listing, method: "POST", path: below, handle: refuseAction },
  ];
}
