import type { Timeouts } from "../domain/upstream-settings.ts";
import type { Destination } from "../routing/candidates.ts";

/** Times of an upstream, where the model does not say otherwise. */
export function timeoutsOf({ model, upstream }: Pick<Destination, "model" | "upstream">): Timeouts {
  const own = model.timeouts;
  const { timeouts } = upstream;
  if (own === undefined) return timeouts;
  return {
    connectMs: timeouts.connectMs,
    firstByteMs: own.firstByteMs ?? timeouts.firstByteMs,
    idleMs: own.idleMs ?? timeouts.idleMs,
    totalMs: own.totalMs ?? timeouts.totalMs,
  };
}
