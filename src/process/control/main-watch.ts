import { systemClock, type Clock } from "../../domain/clock.ts";

/** How often the control thread looks whether the main thread still ticks. */
const lookIntervalMs = 1_000;
/** A count instead of a time, so that a pause of the whole process is no silence. */
const mostSilentLooks = 10;

/**
 * Ends the process when its main thread has not ticked for ten seconds: callers wait for nothing. An
 * orphan, whose main thread should have ended it, keeps the port of the next gateway: it gets one.
 */
export class MainWatch {
  #silentLooks = 0;
  #stop = (): void => undefined;

  constructor(
    { end, isOrphan }: { readonly end: () => void; readonly isOrphan: () => boolean },
    clock: Pick<Clock, "schedule"> = systemClock,
  ) {
    const look = (): void => {
      this.#silentLooks += 1;
      if (this.#silentLooks > (isOrphan() ? 1 : mostSilentLooks)) return end();
      this.#stop = clock.schedule(look, lookIntervalMs);
    };
    this.#stop = clock.schedule(look, lookIntervalMs);
  }

  tick(): void {
    this.#silentLooks = 0;
  }

  stop(): void {
    this.#stop();
  }
}
