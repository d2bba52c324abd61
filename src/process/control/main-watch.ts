import { systemClock, type Clock } from "../../domain/clock.ts";

/** How often the control thread looks whether the main thread still ticks. */
const lookIntervalMs = 1_000;
/** A count instead of a time, so that a pause of the whole process is no silence. */
const mostSilentLooks = 10;

/**
 * Ends the process when its main thread has not ticked for ten seconds: callers wait for nothing. An
 * orphan, whose main thread should have ended it, keeps the port of the next gateway: it gets one.
 */
export function watchMain(
  { end, isOrphan }: { readonly end: () => void; readonly isOrphan: () => boolean },
  clock: Pick<Clock, "schedule"> = systemClock,
) {
  let silentLooks = 0;
  const look = (): void => {
    silentLooks += 1;
    if (silentLooks > (isOrphan() ? 1 : mostSilentLooks)) return end();
    stop = clock.schedule(look, lookIntervalMs);
  };
  let stop = clock.schedule(look, lookIntervalMs);
  return {
    /** The main thread lives. */
    tick(): void {
      silentLooks = 0;
    },
    stop: () => stop(),
  };
}
