import type { ChatRequest } from "../domain/chat/chat.ts";
import type { Model } from "../domain/model.ts";
import { UpstreamFailure } from "../domain/errors/upstream-failure.ts";
import type { Snapshot } from "../snapshot/snapshot.ts";
import { attemptWhole, type AttemptContext } from "./attempts/attempt.ts";

/** Whether an upstream of the model can count tokens. */
export function canCount({ targets }: Model, { upstreams }: Snapshot): boolean {
  return targets.some(({ upstream }) => upstreams.get(upstream)?.adapter.chat?.countTokens);
}

/**
 * The exact number of input tokens, if an upstream of the model can count it now. Throws when the
 * caller leaves, and `context-overflow` when the upstream reports that the input is too long.
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
