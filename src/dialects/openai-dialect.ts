import type { ChatSurface } from "./chat-handler.ts";
import { checkChatRequest } from "./openai-chat/chat-request.ts";
import { checkConversation } from "./request/check-conversation.ts";
import { restoreSeed } from "./request/exact-integers.ts";
import { readChatRequest } from "../wires/chat/read-request.ts";
import { writeCompletion } from "../wires/chat/write-answer.ts";
import { CompletionStreamWriter } from "../wires/chat/write-stream.ts";
import { objectOf } from "../domain/json-fields.ts";
import { bearer } from "../domain/keys/api-key.ts";
import { type Dialect, ownError } from "../edge/replies/error-reply.ts";

/** `POST /v1/chat/completions` */
export const chatCompletions: ChatSurface = {
  endpoint: "chat/completions",
  read({ value, text }) {
    const body = restoreSeed(checkChatRequest(value), text);
    const conversation = readChatRequest(body);
    checkConversation(conversation);
    return {
      conversation,
      body: (answer, about) => writeCompletion(answer, { ...about, id: completionId(about.id) }),
      openWriter: (about) =>
        new CompletionStreamWriter({
          ...about,
          id: completionId(about.id),
          includeUsage: objectOf(body["stream_options"])?.["include_usage"] === true,
          wantsLogprobs: conversation.options.logprobs === true,
        }),
    };
  },
};

function completionId(callId: string): string {
  return `chatcmpl-${callId.slice(4)}`;
}

export const openAiDialect: Dialect = {
  credential: bearer,
  endpoints: { chat: "/v1/chat/completions", embedding: "/v1/embeddings", list: "/v1/models" },
  error: ownError,
  // OpenAI sends no `[DONE]` after an error.
  errorFrame: (error) => `data: ${JSON.stringify(error.toBody())}\n\n`,
};
