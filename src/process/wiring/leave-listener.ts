import type { Listener } from "../../edge/listen.ts";
import type { Shutdown } from "../../edge/shutdown.ts";

export interface Leaving {
  readonly shutdown: Shutdown;
  /** Number of connections, or requests, to wait for. */
  readonly countOpen: (listener: Listener) => number;
  /** Longest wait for them. */
  readonly timeoutMs: number;
  /** Time for connections that are just being made when a successor begins to listen. */
  readonly settleMs: number;
}

/** Serves open connections until they are closed, while a successor gets the new ones. */
export async function leaveListener(
  listener: Listener | undefined,
  { shutdown, countOpen, timeoutMs, settleMs }: Leaving,
): Promise<void> {
  if (listener === undefined) return;
  await Promise.all([
    shutdown.leave(() => countOpen(listener), timeoutMs),
    listener.retire(settleMs),
  ]);
}
