import type { Clock } from "../../domain/clock.ts";
import { BackOff } from "./back-off.ts";
import type { ChildMessage } from "./messages.ts";
import type { Worker, WorkerEnd } from "./worker.ts";

export interface StandbyOptions {
  readonly clock: Clock;
  readonly start: (onMessage: HearWorker) => Worker;
  /** The standby ended while it waited, or could not be started. Called before the next try. */
  readonly onLost: (loss: StandbyLoss) => void;
}

export interface StandbyLoss {
  /** Undefined if it could not be started. */
  readonly end: WorkerEnd | undefined;
  /** Why it could not be started. */
  readonly error: unknown;
  readonly nextStartMs: number;
}

export type HearWorker = (message: ChildMessage) => void;

/** Gives a worker that has just begun to serve a head start before the next one loads. */
const headStartMs = 500;

interface Waiting {
  readonly worker: Worker;
  /** Messages go to the role that took the worker. */
  hear: HearWorker;
}

/**
 * A worker started in advance: it has loaded the program and opens nothing until it is told to
 * begin, so it replaces a crashed one in a fraction of the time.
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

  /** Starts one at once, unless there is one. */
  start(): void {
    if (this.#waiting === undefined) this.#start();
  }

  /** Starts one soon, unless there is one. */
  prepare(): void {
    const isUnderWay = this.#waiting !== undefined || this.#stopTimer !== undefined;
    if (!isUnderWay) this.#startAfter(headStartMs);
  }

  /** Hands over the process. Undefined if it has not started yet. */
  take(hear: HearWorker): Worker | undefined {
    const waiting = this.#release();
    if (waiting === undefined) return undefined;
    waiting.hear = hear;
    return waiting.worker;
  }

  /** Kills the worker, whose program may have been replaced. */
  discard(): void {
    this.#release()?.worker.kill();
  }

  /** Kills the worker; no other is started. */
  end(): void {
    this.#hasEnded = true;
    this.discard();
  }

  #release(): Waiting | undefined {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    return waiting;
  }

  #startAfter(delayMs: number): void {
    if (this.#hasEnded) return;
    this.#stopTimer = this.#options.clock.schedule(() => {
      this.#stopTimer = undefined;
      this.#start();
    }, delayMs);
  }

  #start(): void {
    const { clock, start } = this.#options;
    const startedAt = clock.monotonic();
    try {
      const worker = start((message) => waiting.hear(message));
      const waiting: Waiting = { worker, hear: () => undefined };
      this.#waiting = waiting;
      void worker.ended.then((end) => {
        if (this.#waiting === waiting) this.#lose({ end, error: undefined }, startedAt);
      });
    } catch (error) {
      this.#lose({ end: undefined, error }, startedAt);
    }
  }

  #lose(loss: Omit<StandbyLoss, "nextStartMs">, startedAt: number): void {
    this.#waiting = undefined;
    const nextStartMs = this.#backOff.after(this.#options.clock.monotonic() - startedAt);
    this.#options.onLost({ ...loss, nextStartMs });
    this.#startAfter(nextStartMs);
  }
}
