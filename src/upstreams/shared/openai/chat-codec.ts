import type { Conversation } from "../../../domain/chat/conversation.ts";
import type { ChatCodec, EncodedRequest } from "../../adapter.ts";
import { createSseCodec } from "../sse-codec.ts";
import { ChatWire } from "./stream/decode-chat-stream.ts";
import type { AnswerServices } from "./stream/tool-call-tracker.ts";

/** A request, and the service tier that it names, if it does. */
interface AskedChat extends Pick<EncodedRequest<unknown>, "request" | "adjusted"> {
  readonly askedTier?: string | undefined;
}

/** Writes a request to the model's id. */
export type Ask = (conversation: Conversation, model: string) => AskedChat;

export interface ChatServices extends Omit<AnswerServices, "signsByThoughts"> {
  /** As in `EncodedStreamRequest`. */
  readonly isAnsweredWhole?: boolean;
}

/** Chat completions, whole and streamed. */
export function createChatCodec(
  ask: Ask,
  { isAnsweredWhole = false, ...services }: ChatServices,
): Pick<ChatCodec, "encode" | "encodeStream"> {
  const forChat = { ...services, signsByThoughts: false };
  const forOthers = { ...services, signsByThoughts: true };
  return createSseCodec((conversation, model) => {
    const { request, adjusted, askedTier } = ask(conversation, model);
    const ofWire = conversation.wire === "chat" ? forChat : forOthers;
    const wire = new ChatWire(askedTier === undefined ? ofWire : { ...ofWire, askedTier });
    return { request, adjusted, isAnsweredWhole, wire };
  });
}
