import type { ChatSurface } from "./chat-handler.ts";
import { chatBody } from "./openai-chat/chat-body.ts";
import { ChatChunkWriter } from "./openai-chat/chat-chunks.ts";
import { checkChatRequest } from "./openai-chat/schema/chat-request.ts";
import { restoreLargeSeed } from "./openai-chat/schema/large-seed.ts";
import { readChatRequest } from "../wires/chat/read-request.ts";
import { objectOf } from "../domain/json-fields.ts";
import { bearer } from "../domain/keys/api-key.ts";
import { type Dialect, ownError } from "../edge/replies/error-reply.ts";

/** `POST /v1/chat/completions` */
export const chatCompletions: ChatSurface = {
  endpoint: "chat/completions",
  read({ value, text }) {
    const body = restoreLargeSeed(checkChatRequest(value), text);
    const conversation = readChatRequest(body);
    return {
      conversation,
      body: (answer, about) => chatBody(answer, { ...about, id: completionId(about.callId) }),
      openWriter: (about) =>
        new ChatChunkWriter({
          ...about,
          id: completionId(about.callId),
          includeUsage: objectOf(body["stream_options"])?.["include_usage"] === true,
          wantsLogprobs: conversation.options.logprobs === true,
        }),
    };
  },
};

function completionId(callId: string): string {
  return `chatcmpl-${callId.slice(4)}`;
}

export const openAi: Dialect = {
  credential: bearer,
  endpoints: { chat: "/v1/chat/completions", embedding: "/v1/embeddings", list: "/v1/models" },
  error: ownError,
  // OpenAI sends no `[DONE]` after an error.
  errorFrame: (error) => `data: ${JSON.stringify(error.toBody())}\n\n`,
};
