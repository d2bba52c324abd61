import type { Conversation } from "../../../domain/chat/conversation.ts";
import type { ChatCodec, UpstreamRequest } from "../../adapter.ts";
import type { AnswerContext } from "../answers/answer-context.ts";
import type { OnUnknownFinish } from "../finish-words.ts";
import { type AnswerWire, createAnswerCodec, newSseParser } from "../answer-codec.ts";
import type { EncodedMessages } from "./encode-messages.ts";
import { MessagesAnswer, messagesUsage } from "./messages-answer.ts";

/** A request of the Messages API, and what its answer is read with. */
type MessagesRequest = Omit<EncodedMessages, "body"> & { readonly request: UpstreamRequest };

/** The Messages API for whole and streamed answers. `ask` writes a request to the model's id. */
export function createMessagesCodec(
  ask: (conversation: Conversation, identifier: string) => MessagesRequest,
  onUnknownFinish: OnUnknownFinish,
): Pick<ChatCodec, "encode" | "encodeStream"> {
  return createAnswerCodec((conversation, identifier) => {
    const { context, request, adjusted } = ask(conversation, identifier);
    return { request, adjusted, wire: messagesWire(context, onUnknownFinish) };
  });
}

export function messagesWire(context: AnswerContext, onUnknownFinish: OnUnknownFinish): AnswerWire {
  return {
    newParser: newSseParser,
    newReader: () => new MessagesAnswer(context, onUnknownFinish),
    usageOf: messagesUsage,
  };
}
