import { countTokens } from "../../call/count-tokens.ts";
import type { KeyCall } from "../../edge/dispatch/route.ts";
import { jsonReply, type Reply } from "../../edge/replies/error-reply.ts";
import { readMessagesRequest } from "../../wires/messages/read-request.ts";
import { type HandlerParts, readCall } from "../read-call.ts";
import { checkCountRequest } from "./check-request.ts";
import { requireContent } from "./messages-dialect.ts";

/** `POST /v1/messages/count_tokens`; a header marks estimates, which are rarely too low. */
export function createCountTokens({
  services,
}: Pick<HandlerParts, "services">): (call: KeyCall) => Promise<Reply> {
  return async (call) => {
    const { value, bodyBytes } = await readCall(call);
    const request = requireContent(readMessagesRequest(checkCountRequest(value)));
    const { inputTokens, isEstimate } = await countTokens(call, { request, bodyBytes }, services);
    const headers = isEstimate ? { "x-sluice-estimate": "true" } : {};
    return jsonReply({ input_tokens: inputTokens }, headers);
  };
}
