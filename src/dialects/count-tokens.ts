import { countTokens } from "../call/count-tokens.ts";
import type { Conversation } from "../domain/chat/conversation.ts";
import type { KeyCall } from "../edge/dispatch/route.ts";
import { jsonReply, type Reply } from "../edge/replies/error-reply.ts";
import type { ReadingCall } from "./chat-handler.ts";
import { type HandlerParts, readCall } from "./read-call.ts";
import type { JsonBody } from "./request/parse-json.ts";

/** An endpoint that counts the input of a conversation: how a dialect reads and writes it. */
export interface CountSurface {
  /** Throws 400. */
  read(body: JsonBody, call: ReadingCall): Conversation | Promise<Conversation>;
  body(inputTokens: number): object;
}

/** Handles calls of an endpoint that counts. A header marks estimates, which are rarely too low. */
export function createCountTokens(
  surface: CountSurface,
  { services }: Pick<HandlerParts, "services">,
): (call: KeyCall) => Promise<Reply> {
  return async (call) => {
    const read = await readCall(call);
    const { bodyBytes } = read;
    const request = await surface.read(read, call);
    const { inputTokens, isEstimate } = await countTokens(call, { request, bodyBytes }, services);
    const headers = isEstimate ? { "x-sluice-estimate": "true" } : {};
    return jsonReply(surface.body(inputTokens), headers);
  };
}
