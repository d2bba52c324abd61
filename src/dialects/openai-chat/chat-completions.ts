import type { ChatSurface } from "../chat-handler.ts";
import { chatBody } from "./chat-body.ts";
import { ChatChunkWriter } from "./chat-chunks.ts";
import { parseChatRequest } from "./schema/chat-request.ts";
import { restoreLargeSeed } from "./schema/large-seed.ts";

/** `POST /v1/chat/completions` */
export const chatCompletions: ChatSurface = {
  endpoint: "chat/completions",
  parse: ({ value, text }) => restoreLargeSeed(parseChatRequest(value), text),
  body: (answer, about) => chatBody(answer, { ...about, id: completionId(about.callId) }),
  openWriter: (request, about) =>
    new ChatChunkWriter({
      ...about,
      id: completionId(about.callId),
      includeUsage: request.stream_options?.include_usage === true,
      wantsLogprobs: request.logprobs === true,
    }),
};

function completionId(callId: string): string {
  return `chatcmpl-${callId.slice(4)}`;
}
