import type { Clock } from "../../domain/clock.ts";
import type { TelemetryEvents } from "../../telemetry/events/events.ts";
import type { LinkLost } from "../link/link-errors.ts";

export interface ControlOutageOptions {
  readonly clock: Pick<Clock, "schedule">;
  /** Undefined before the worker has read its configuration. */
  readonly events: () =>
    Pick<TelemetryEvents, "controlLost" | "controlBack" | "controlReplaced"> | undefined;
}

/** Longest time without control while one process replaces another. Up to this it is no failure. */
const takeOverLimitMs = 3_000;

/** Reports that control is lost and back, or that one process has replaced another. */
export class ControlOutage {
  readonly #options: ControlOutageOptions;
  #stopWaiting: (() => void) | undefined;

  constructor(options: ControlOutageOptions) {
    this.#options = options;
  }

  lost(reason: LinkLost, isReplaced: boolean): void {
    const { clock, events } = this.#options;
    if (!isReplaced) return events()?.controlLost(reason);
    this.#stopWaiting = clock.schedule(() => {
      this.#stopWaiting = undefined;
      events()?.controlLost(reason);
    }, takeOverLimitMs);
  }

  back(): void {
    const events = this.#options.events();
    if (this.#stopWaiting === undefined) events?.controlBack();
    else events?.controlReplaced();
    this.stop();
  }

  stop(): void {
    this.#stopWaiting?.();
    this.#stopWaiting = undefined;
  }
}
