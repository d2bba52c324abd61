import type { Clock } from "../../domain/clock.ts";
import { BackOff } from "./back-off.ts";
import type { WorkerMessage } from "./messages.ts";
import type { Worker, WorkerEnd } from "./worker.ts";

export interface StandbyOptions {
  readonly clock: Clock;
  readonly start: (fetchLimit: FetchLimit, onMessage: HearWorker) => Worker;
  /** It ended while it waited, or the system would not start it. Told before the next try. */
  readonly onLost: (loss: StandbyLoss) => void;
}

export interface StandbyLoss {
  /** Undefined when there was none. */
  readonly end: WorkerEnd | undefined;
  /** Why there was none. */
  readonly error: unknown;
  readonly nextStartMs: number;
}

/** Most simultaneous fetches, fixed when a process starts; undefined: the operator's or the usual. */
export type FetchLimit = number | undefined;
export type HearWorker = (message: WorkerMessage) => void;

/** What loads a program leaves the processor to a worker that has just begun to serve. */
const headStartMs = 500;

interface Waiting {
  readonly worker: Worker;
  readonly fetchLimit: FetchLimit;
  readonly startedAt: number;
  /** What it says goes to whom it works for. */
  hear: HearWorker;
}

/**
 * A worker that is started ahead: it has loaded the program and opens nothing until it is told to
 * begin, so that it takes the place of one that ended in a fraction of the time.
 */
export class Standby {
  readonly #options: StandbyOptions;
  readonly #backOff = new BackOff();
  #waiting: Waiting | undefined;
  #stopTimer: (() => void) | undefined;
  #hasEnded = false;

  constructor(options: StandbyOptions) {
    this.#options = options;
  }

  /** Sees to it that there is one soon. */
  prepare(fetchLimit: FetchLimit): void {
    const isUnderWay = this.#waiting !== undefined || this.#stopTimer !== undefined;
    if (!isUnderWay) this.#startAfter(headStartMs, fetchLimit);
  }

  /** Hands it over, once. None when it was not started yet, or with another limit. */
  take(fetchLimit: FetchLimit, hear: HearWorker): Worker | undefined {
    const waiting = this.#release();
    if (waiting === undefined) return undefined;
    if (waiting.fetchLimit !== fetchLimit) {
      waiting.worker.kill();
      return undefined;
    }
    waiting.hear = hear;
    return waiting.worker;
  }

  /** There is none any more, and there will be none. */
  end(): void {
    this.#hasEnded = true;
    this.#release()?.worker.kill();
  }

  #release(): Waiting | undefined {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    return waiting;
  }

  #startAfter(delayMs: number, fetchLimit: FetchLimit): void {
    if (this.#hasEnded) return;
    this.#stopTimer = this.#options.clock.schedule(() => {
      this.#stopTimer = undefined;
      this.#start(fetchLimit);
    }, delayMs);
  }

  #start(fetchLimit: FetchLimit): void {
    const { clock, start } = this.#options;
    const startedAt = clock.monotonic();
    try {
      const worker = start(fetchLimit, (message) => waiting.hear(message));
      const waiting: Waiting = { worker, fetchLimit, startedAt, hear: () => undefined };
      this.#waiting = waiting;
      void worker.ended.then((end) => {
        if (this.#waiting === waiting) this.#lose({ end, error: undefined }, waiting);
      });
    } catch (error) {
      this.#lose({ end: undefined, error }, { fetchLimit, startedAt });
    }
  }

  #lose(
    loss: Omit<StandbyLoss, "nextStartMs">,
    { fetchLimit, startedAt }: Pick<Waiting, "fetchLimit" | "startedAt">,
  ): void {
    this.#waiting = undefined;
    const nextStartMs = this.#backOff.after(this.#options.clock.monotonic() - startedAt);
    this.#options.onLost({ ...loss, nextStartMs });
    this.#startAfter(nextStartMs, fetchLimit);
  }
}
