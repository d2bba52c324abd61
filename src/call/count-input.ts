import type { ChatRequest } from "../domain/chat/chat.ts";
import type { Model } from "../domain/model.ts";
import { UpstreamFailure } from "../domain/errors/upstream-failure.ts";
import type { Snapshot } from "../snapshot/snapshot.ts";
import { attemptWhole, type AttemptContext } from "./attempts/attempt.ts";

/** Whether an upstream of the model may count at all. */
export function canCount({ targets }: Model, { upstreams }: Snapshot): boolean {
  return targets.some(({ upstream }) => upstreams.get(upstream)?.adapter.chat?.countTokens);
}

/**
 * The exact number of input tokens, where an upstream of the model tells it without running the
 * request; undefined where none does, or it cannot at the moment. Throws when the caller leaves, and
 * `context-overflow` where the upstream says that the input is too long for the model.
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
    const candidate = { model, target, upstream };
    try {
      const exchange = count(request, target.model);
      if (exchange === undefined) continue;
      return await attemptWhole(exchange, candidate, context);
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      context.services.onAttemptFailed(context.call, candidate, error);
      if (error.details.kind === "context-overflow") throw error;
    }
  }
  return undefined;
}
