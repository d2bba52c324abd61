import type { ChatRequest } from "../domain/chat.ts";
import type { Model } from "../domain/model.ts";
import { UpstreamFailure } from "../domain/upstream-failure.ts";
import { attemptWhole, type AttemptContext } from "./attempt.ts";

/**
 * The exact number of input tokens, where an upstream of the model tells it without running the
 * request; undefined where none does, or it cannot at the moment. Throws when the caller leaves.
 */
export async function countInput(
  request: ChatRequest,
  model: Model,
  context: AttemptContext,
): Promise<number | undefined> {
  for (const target of model.targets) {
    const upstream = context.call.snapshot.upstreams.get(target.upstream);
    const count = upstream?.adapter.chat?.countTokens;
    if (upstream === undefined || count === undefined) continue;
    try {
      const exchange = count(request, target.model);
      if (exchange === undefined) continue;
      return await attemptWhole(exchange, { model, target, upstream }, context);
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
    }
  }
  return undefined;
}
