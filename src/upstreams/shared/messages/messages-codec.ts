import type { AdjustedFields } from "../../../domain/chat/answer.ts";
import type { Conversation } from "../../../domain/chat/conversation.ts";
import { usageIn } from "../../../domain/json-fields.ts";
import type { ChatCodec, UpstreamRequest } from "../../adapter.ts";
import type { AnswerContext } from "../answers/answer-context.ts";
import type { OnUnknownFinish } from "../finish-words.ts";
import { decodeMessages, MessagesStreamDecoder } from "./decode-messages.ts";
import { messagesUsage } from "./messages-answer.ts";

/** A request of the Messages API, and what its answer is read with. */
interface MessagesRequest {
  readonly request: UpstreamRequest;
  readonly context: AnswerContext;
  readonly adjusted: AdjustedFields;
}

/** The Messages API for whole and streamed answers. `ask` writes a request to the model's id. */
export function createMessagesCodec(
  ask: (conversation: Conversation, identifier: string) => MessagesRequest,
  onUnknownFinish: OnUnknownFinish,
): Pick<ChatCodec, "encode" | "encodeStream"> {
  return {
    encode(conversation, identifier) {
      const { context, ...encoded } = ask({ ...conversation, isStreamed: false }, identifier);
      return {
        ...encoded,
        decode: (answer) => decodeMessages(answer, { context, onUnknownFinish }),
        usageIn: (body) => messagesUsage(usageIn(body)),
      };
    },
    encodeStream(conversation, identifier) {
      const { context, ...encoded } = ask({ ...conversation, isStreamed: true }, identifier);
      return {
        ...encoded,
        newDecoder: (limits) => new MessagesStreamDecoder({ context, onUnknownFinish }, limits),
      };
    },
  };
}
