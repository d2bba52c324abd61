import type { Clock } from "../../domain/clock.ts";

export interface HeartbeatOptions {
  readonly clock: Pick<Clock, "schedule">;
  /** Sends a question that the process answers. */
  readonly ask: () => void;
  /** Called once, when the process does not answer. */
  readonly onSilent: () => void;
}

const intervalMs = 1_000;
/**
 * A count instead of a time, so that a pause of this process does not count as silence of the
 * other.
 */
const mostUnanswered = 10;

/** Checks that a process still answers; one that is stopped or hangs does not. */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  #unanswered = 0;
  #stop = (): void => undefined;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#beat();
  }

  answered(): void {
    this.#unanswered = 0;
  }

  stop(): void {
    this.#stop();
  }

  #beat(): void {
    const { clock, ask, onSilent } = this.#options;
    if (this.#unanswered >= mostUnanswered) return onSilent();
    this.#unanswered += 1;
    ask();
    this.#stop = clock.schedule(() => this.#beat(), intervalMs);
  }
}
