import type { Conversation } from "../domain/chat/conversation.ts";
import type { Model } from "../domain/model.ts";
import { UpstreamFailure } from "../domain/errors/upstream-failure.ts";
import type { Snapshot } from "../snapshot/snapshot.ts";
import { heldStateIn } from "./opaque/held-state.ts";
import { callerCodec } from "./opaque/caller-codec.ts";
import { attemptWhole } from "./attempts/ask-upstream.ts";
import type { CountContext } from "./attempts/call-candidates.ts";

/** Whether an upstream of the model can count tokens. */
export function canCount({ targets }: Model, { upstreams }: Snapshot): boolean {
  return targets.some(({ upstream }) => upstreams.get(upstream)?.adapter.chat?.countTokens);
}

/**
 * The exact number of input tokens, if an upstream of the model can count it now. Counting is no part
 * of the call: a failure is remembered for counts alone, and the estimate decides. Throws when the
 * caller leaves, and `context-overflow` when the upstream reports that the input is too long.
 */
export async function countInput(
  request: Conversation,
  model: Model,
  context: CountContext,
): Promise<number | undefined> {
  const { call, meter, services } = context;
  const { counting, onCountFailed, tags } = services;
  const held = heldStateIn(request);
  for (const target of model.targets) {
    const upstream = call.snapshot.upstreams.get(target.upstream);
    const codec = upstream?.adapter.chat;
    if (upstream === undefined || codec === undefined || counting.isResting(target.id)) continue;
    const candidate = { model: withinTime(model, context), target, upstream };
    const count = callerCodec(codec, candidate, { call, tags, held }).countTokens;
    if (count === undefined) continue;
    try {
      const exchange = count(request, target.model);
      if (exchange === undefined) continue;
      const own = { call, meter, services, candidate, signal: call.signal, attempt: undefined };
      return await attemptWhole(exchange, { ...own, share: 1 });
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      counting.failed(target.id, error.details.kind);
      onCountFailed(call, candidate, withOwnHint(error));
      if (error.details.kind === "context-overflow") throw error;
    }
  }
  return undefined;
}

/** A count saves a refusal; it is not worth a longer wait. */
const longestCountMs = 5_000;

function withinTime(model: Model, { call, services }: CountContext): Model {
  const waitedMs = services.clock.monotonic() - call.receivedAt;
  return { ...model, timeouts: { ...model.timeouts, totalMs: waitedMs + longestCountMs } };
}

/** The time is not one of the timeouts that the operator sets. */
function withOwnHint(failure: UpstreamFailure): UpstreamFailure {
  const { details } = failure;
  if (details.kind !== "timed-out") return failure;
  const hint = `a count may take ${longestCountMs} ms`;
  return new UpstreamFailure({ ...details, hint }, { cause: failure });
}
