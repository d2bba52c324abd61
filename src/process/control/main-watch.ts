import { systemClock, type Clock } from "../../domain/clock.ts";

/** How often the control thread looks whether the main thread still ticks. */
const lookIntervalMs = 1_000;
/** A count instead of a time, so that a pause of the whole process is no silence. */
const mostSilentLooks = 10;

/** Ends the process when its main thread has not ticked for ten seconds: callers wait for nothing. */
export class MainWatch {
  readonly #end: () => void;
  #silentLooks = 0;
  #stop = (): void => undefined;

  constructor(end: () => void, clock: Pick<Clock, "schedule"> = systemClock) {
    this.#end = end;
    const look = (): void => {
      this.#silentLooks += 1;
      if (this.#silentLooks > mostSilentLooks) return this.#end();
      this.#stop = clock.schedule(look, lookIntervalMs);
    };
    this.#stop = clock.schedule(look, lookIntervalMs);
  }

  /** The main thread lives. */
  tick(): void {
    this.#silentLooks = 0;
  }

  stop(): void {
    this.#stop();
  }
}
