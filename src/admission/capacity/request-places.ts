import type { EndSignal } from "../../domain/waiting/end-signal.ts";
import type { Clock } from "../../domain/clock.ts";
import type { UpstreamPlaces } from "./upstream-places.ts";

/** How a request waits for a place. */
export interface RequestWait {
  readonly callerSignal: EndSignal;
  readonly waitMs: number;
  readonly clock: Pick<Clock, "schedule">;
}

/** Whether the limit of the upstream applies: it does not within guarantees, nor to probes. */
export interface RequestTerms {
  readonly isBound: boolean;
}

/**
 * The places of one attempt's requests at an upstream. One is held while the attempt runs; more are
 * taken where parts of a call run at once, and given back one by one.
 */
export class RequestPlaces {
  readonly #upstream: UpstreamPlaces;
  readonly #isBound: boolean;
  #taken: number;
  /** Of these, how many are kept while no request is under way. */
  #kept: number;
  #open = 0;
  #isLeft = false;
  #waiting: Set<() => void> | undefined;

  /** `taken`: places that were already taken for it and are kept, one or none. */
  constructor(upstream: UpstreamPlaces, isBound: boolean, taken: 0 | 1) {
    this.#upstream = upstream;
    this.#isBound = isBound;
    this.#taken = taken;
    this.#kept = taken;
  }

  /**
   * Takes free places for `count` requests at once; returns how many may run. A promise only where
   * other processes may have some of these places.
   */
  extend(count: number): number | Promise<number> {
    const running = this.#takeFree(count);
    const asked = running < count ? this.#upstream.askMore() : undefined;
    return asked?.then(() => this.#takeFree(count)) ?? running;
  }

  /** False when there is no place now. Each that is opened must be closed once. */
  tryOpen(): boolean {
    if (this.#open >= this.#taken) {
      if (!this.#isBound) this.#upstream.take();
      else if (!this.#upstream.tryTake()) return false;
      this.#taken += 1;
    }
    this.#open += 1;
    return true;
  }

  /** Waits for a place; false after the timeout, or when the signal has fired. */
  whenOpen({ callerSignal, waitMs, clock }: RequestWait): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (isOpen: boolean): void => {
        cancel();
        callerSignal.removeEventListener("abort", stop);
        this.#waiting?.delete(look);
        this.#upstream.forget(look);
        resolve(isOpen);
      };
      const look = (): void => {
        if (this.tryOpen()) end(true);
        else this.#upstream.whenFree(look);
      };
      const stop = (): void => end(false);
      const cancel = clock.schedule(stop, waitMs);
      callerSignal.addEventListener("abort", stop, { once: true });
      this.#waiting ??= new Set();
      this.#waiting.add(look);
      this.#upstream.whenFree(look);
    });
  }

  close(): void {
    this.#open -= 1;
    if (this.#taken > this.#kept) {
      this.#taken -= 1;
      this.#upstream.giveBack();
    } else if (this.#waiting !== undefined) {
      const [look] = this.#waiting;
      look?.();
    }
  }

  /** Gives back the kept place; places of requests under way are given back when they end. */
  release(): void {
    this.#kept = 0;
    this.#isLeft = true;
    while (this.#taken > this.#open) {
      this.#taken -= 1;
      this.#upstream.giveBack();
    }
  }

  #takeFree(count: number): number {
    // The call may have ended while other processes were asked.
    const isLeft = this.#isLeft;
    while (!isLeft && this.#taken < count && this.#upstream.tryTake()) this.#taken += 1;
    return Math.max(1, this.#taken);
  }
}
