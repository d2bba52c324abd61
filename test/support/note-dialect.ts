import { createChatHandler, type ChatSurface } from "../../src/dialects/chat-handler.ts";
import { checkChatRequest } from "../../src/dialects/openai-chat/schema/chat-request.ts";
import { requireObject } from "../../src/dialects/request/parse-json.ts";
import type { AnswerBlock } from "../../src/domain/chat/answer.ts";
import type { GatewayError } from "../../src/domain/errors/gateway-error.ts";
import type { Dialect } from "../../src/edge/replies/error-reply.ts";
import { readChatRequest } from "../../src/wires/chat/read-request.ts";
import type { AppOverrides } from "./app.ts";

/** A dialect similar to Anthropic's: another credential, other errors, other frames. */
const notes: Dialect = {
  credential: {
    read: (headers) => headers.get("x-api-key") ?? "",
    name: "x-api-key header",
    header: "x-api-key header (x-api-key: YOUR_KEY)",
    challenge: {},
  },
  endpoints: { chat: "/v1/notes", embedding: "/v1/embeddings", list: "/v1/models" },
  error: (error) => ({
    status: error.code === "invalid_model" ? 404 : error.status,
    body: JSON.stringify(bodyOf(error)),
  }),
  errorFrame: (error) => frame("error", bodyOf(error)),
};

const types: Readonly<Record<number, string>> = {
  401: "authentication_error",
  404: "not_found_error",
  405: "method_error",
  429: "rate_limit_error",
};

function bodyOf(error: GatewayError): object {
  const status = error.code === "invalid_model" ? 404 : error.status;
  const { message } = error.toBody().error;
  return { type: "error", error: { type: types[status] ?? "api_error", message } };
}

function frame(event: string, data: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Takes `{ model, note, stream }`. */
const surface: ChatSurface = {
  endpoint: "notes",
  read({ value }) {
    const { model, note, stream } = requireObject(value);
    const messages = [{ role: "user", content: note }];
    return {
      conversation: readChatRequest(checkChatRequest({ model, stream, messages })),
      body: ({ choices }, { model: served }) => ({
        type: "note",
        model: served,
        text: textOf(choices[0]?.blocks),
      }),
      openWriter: () => ({
        write: (events) =>
          events.map((event) => (event.type === "text-delta" ? frame("text", event) : "")).join(""),
        end: (usage) => frame("stop", { tokens: usage.outputTokens }),
        keepAlive: () => frame("ping", {}),
      }),
    };
  },
};

function textOf(blocks: readonly AnswerBlock[] = []): string {
  return blocks.map((block) => (block.type === "text" ? block.text : "")).join("");
}

/** `POST /v1/notes` in addition to the other endpoints. */
export const withNotes: AppOverrides = {
  surfaces: (parts) => [
    {
      method: "POST",
      path: "/v1/notes",
      access: "key",
      dialect: notes,
      counts: "call",
      handle: createChatHandler(surface, parts),
    },
  ],
};
