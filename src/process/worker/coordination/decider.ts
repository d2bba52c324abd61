import type { Clock } from "../../../domain/clock.ts";
import { wait } from "../../../domain/waiting/wait.ts";
import { LinkLost } from "../../link/link-errors.ts";

/** `lost`: control may be running, but does not decide for this worker yet. */
type State = "lost" | "linked" | "alone";

/** Longest wait until control is back, or has certainly ended. */
const unknownLimitMs = 5_000;

/**
 * Who decides about what workers share: control, or this worker alone while control is unavailable.
 */
export class Decider {
  readonly #clock: Pick<Clock, "schedule">;
  #state: State = "lost";
  #change = new AbortController();

  constructor(clock: Pick<Clock, "schedule">) {
    this.#clock = clock;
  }

  get isLinked(): boolean {
    return this.#state === "linked";
  }

  get isAlone(): boolean {
    return this.#state === "alone";
  }

  /** Fires at the next change. */
  get change(): AbortSignal {
    return this.#change.signal;
  }

  enter(state: State): void {
    if (this.#state === state) return;
    this.#state = state;
    const change = this.#change;
    this.#change = new AbortController();
    change.abort();
  }

  /** Control may still be running, but no longer decides for this worker. */
  lost(): void {
    if (this.isLinked) this.enter("lost");
  }

  /** Resolves when it is known who decides; rejects with `LinkLost` if that takes too long. */
  async known(): Promise<void> {
    while (this.#state === "lost") {
      const { change } = this;
      await wait(unknownLimitMs, change, this.#clock);
      if (change.aborted) continue;
      throw new LinkLost(`control does not decide within ${unknownLimitMs} ms`);
    }
  }
}
