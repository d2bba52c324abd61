import type { ChatEvent, ChatResult } from "../../../domain/chat/answer.ts";
import type { Conversation } from "../../../domain/chat/conversation.ts";
import { usageIn } from "../../../domain/json-fields.ts";
import type { ChatCodec, EncodedRequest } from "../../adapter.ts";
import { collectAnswer, collectStream } from "../collect-answer.ts";
import { isJson } from "../whole-body.ts";
import { readUsage } from "./read-answer.ts";
import { AnswerReader } from "./stream/answer-reader.ts";
import { ChatStreamDecoder } from "./stream/decode-chat-stream.ts";
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
  const servicesFor = ({ wire }: Conversation, { askedTier }: AskedChat): AnswerServices => {
    const ofWire = wire === "chat" ? forChat : forOthers;
    return askedTier === undefined ? ofWire : { ...ofWire, askedTier };
  };
  return {
    encode(conversation, model) {
      const asked = ask(conversation, model);
      const { request, adjusted, askedTier } = asked;
      return {
        request,
        adjusted,
        decode: ({ body }) => decodeChat(body, servicesFor(conversation, asked)),
        usageIn: (body) => readUsage(usageIn(body), askedTier),
      };
    },
    encodeStream(conversation, model) {
      const asked = ask({ ...conversation, isStreamed: true }, model);
      const { request, adjusted } = asked;
      return {
        request,
        adjusted,
        isAnsweredWhole,
        newDecoder: (limits) => new ChatStreamDecoder(servicesFor(conversation, asked), limits),
      };
    },
  };
}

const utf8 = new TextDecoder();

/**
 * Reads the answer to a request for a whole one: a `chat.completion`, or a stream in its place.
 * Throws `UpstreamFailure` for anything else.
 */
function decodeChat(body: Uint8Array, services: AnswerServices): ChatResult {
  if (!isJson(body)) {
    return collectStream((limits) => new ChatStreamDecoder(services, limits), body);
  }
  const events: ChatEvent[] = [];
  new AnswerReader(services).readWhole(utf8.decode(body), events);
  return collectAnswer(events);
}
