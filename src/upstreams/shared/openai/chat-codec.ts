import type { Conversation } from "../../../domain/chat/conversation.ts";
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import type { ChatCodec, EncodedRequest } from "../../adapter.ts";
import {
  type AnswerWire,
  createAnswerCodec,
  type EventReader,
  newSseParser,
} from "../answer-codec.ts";
import { readUsage } from "./read-answer.ts";
import { AnswerReader } from "./stream/answer-reader.ts";
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
  return createAnswerCodec((conversation, model) => {
    const { request, adjusted, askedTier } = ask(conversation, model);
    const ofWire = conversation.wire === "chat" ? forChat : forOthers;
    const wire = new ChatWire(askedTier === undefined ? ofWire : { ...ofWire, askedTier });
    return { request, adjusted, isAnsweredWhole, wire };
  });
}

/** Answers are `chat.completion`s, or streams of `chat.completion.chunk`s. */
export class ChatWire implements AnswerWire {
  readonly #services: AnswerServices;

  constructor(services: AnswerServices) {
    this.#services = services;
  }

  readonly newParser = newSseParser;

  newReader(): EventReader {
    return new AnswerReader(this.#services);
  }

  usageOf(usage: unknown): TokenUsage | undefined {
    return readUsage(usage, this.#services.askedTier);
  }
}
