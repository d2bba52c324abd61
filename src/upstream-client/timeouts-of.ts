import type { Timeouts } from "../domain/upstream-settings.ts";
import type { Destination } from "../routing/candidates.ts";

/**
 * Those of a request whose answer comes as a whole, when the model has written all of it: only its
 * end has a time, and a connection that stops in the middle of it.
 */
export function wholeTimeouts(timeouts: Timeouts): Timeouts {
  return { ...timeouts, firstByteMs: Number.POSITIVE_INFINITY };
}

/** Timeouts of the upstream, overridden by those of the model. */
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
