import { chatCompletions, openAi } from "./dialects/openai-dialect.ts";
import { createChatHandler } from "./dialects/chat-handler.ts";
import { createEmbeddings } from "./dialects/embeddings/embeddings.ts";
import type { HandlerParts } from "./dialects/read-call.ts";
import { listModels, retrieveModel } from "./dialects/models/models.ts";
import { createReadiness, health } from "./edge/shutdown.ts";
import type { Route } from "./edge/dispatch/route.ts";

export interface DataRouteOptions extends HandlerParts {
  /** Routes of further dialects. */
  readonly surfaces?: ((parts: HandlerParts) => readonly Route[]) | undefined;
  /** Undefined when the process can serve. */
  readonly whyNotReady: () => string | undefined;
  /** What a gateway that can serve lacks; undefined: nothing. */
  readonly howDegraded: () => string | undefined;
}

const call = { access: "key", dialect: openAi, counts: "call" } as const;
const listing = { ...call, counts: "listing" } as const;

/** Every path of the data listener. Each also answers without `/v1` and with a trailing slash. */
export function dataRoutes(options: DataRouteOptions): readonly Route[] {
  const chat = createChatHandler(chatCompletions, options);
  const readiness = createReadiness(options.whyNotReady, options.howDegraded);
  return [
    { ...call, method: "POST", path: "/v1/chat/completions", handle: chat },
    { ...call, method: "POST", path: "/v1/embeddings", handle: createEmbeddings(options) },
    { ...listing, method: "GET", path: "/v1/models", handle: listModels },
    { ...listing, method: "GET", path: "/v1/models/*", handle: retrieveModel },
    ...(options.surfaces?.(options) ?? []),
    { method: "GET", path: "/healthz", access: "public", handle: health },
    { method: "GET", path: "/readyz", access: "public", handle: readiness },
  ];
}
