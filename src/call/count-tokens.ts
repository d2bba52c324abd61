import { measureChatInput } from "../admission/estimate/estimate.ts";
import { UpstreamFailure } from "../domain/errors/upstream-failure.ts";
import { type Call, resolveModel } from "../snapshot/call.ts";
import type { ChatCall } from "./chat/chat-call.ts";
import { canCount, countInput } from "./count-input.ts";
import { toCallError } from "./run-call.ts";
import type { CallServices } from "./services.ts";

export interface TokenCount {
  readonly inputTokens: number;
  /** Whether no target of the model could count it now. */
  readonly isEstimate: boolean;
}

/**
 * Counts the input of a conversation that is not answered, so nothing is reserved or recorded. Throws
 * `GatewayError`.
 */
export async function countTokens(
  call: Call,
  { request, bodyBytes }: ChatCall,
  services: CallServices,
): Promise<TokenCount> {
  const model = resolveModel(call, request.model, "chat");
  if (canCount(model, call.snapshot)) {
    try {
      const counted = await countInput(request, model, { call, meter: noMeter, services });
      if (counted !== undefined) return { inputTokens: counted, isEstimate: false };
    } catch (error) {
      // Who counts wants to know by how much it is too long.
      const isTooLong =
        error instanceof UpstreamFailure && error.details.kind === "context-overflow";
      if (!isTooLong) throw toCallError(error, model);
    } finally {
      call.answerMemory?.release();
    }
  }
  const { accountId, id: keyId } = call.caller.key;
  const subject = { accountId, keyId, model, nowMs: services.clock.monotonic() };
  const size = measureChatInput(request, bodyBytes);
  const { inputTokens } = services.estimator.estimate(subject, size, { cap: 1, choices: 1 });
  return { inputTokens: Math.max(1, inputTokens), isEstimate: true };
}

/** A count costs nothing. */
const noMeter = { attemptFailed: () => 0 };
