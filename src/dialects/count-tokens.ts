import { countTokens } from "../call/count-tokens.ts";
import type { KeyCall } from "../edge/dispatch/route.ts";
import { jsonReply, type Reply } from "../edge/replies/error-reply.ts";
import type { ReadChat, ReadingCall } from "./chat-handler.ts";
import { type HandlerParts, readCall } from "./read-call.ts";
import type { JsonBody } from "./request/parse-json.ts";

/** An endpoint that counts the input of a conversation: how a dialect reads and writes it. */
export interface CountSurface {
  /** As of the endpoint for chat. */
  read(body: JsonBody, call: ReadingCall): Asked | Promise<Asked>;
  body(inputTokens: number): object;
}

type Asked = Pick<ReadChat, "conversation">;

/** Handles calls of an endpoint that counts. A header marks estimates, which are rarely too low. */
export function createCountTokens(
  surface: CountSurface,
  { services }: Pick<HandlerParts, "services">,
): (call: KeyCall) => Promise<Reply> {
  return async (call) => {
    const read = await readCall(call);
    const { bodyBytes } = read;
    const { conversation: request } = await surface.read(read, call);
    const { inputTokens, isEstimate } = await countTokens(call, { request, bodyBytes }, services);
    const headers = isEstimate ? { "x-sluice-estimate": "true" } : {};
    return jsonReply(surface.body(inputTokens), headers);
  };
}
