import type { Clock } from "../../domain/clock.ts";
import type { UpstreamPlaces } from "./upstream-places.ts";

/** How a request waits for a place. */
export interface RequestWait {
  readonly callerSignal: AbortSignal;
  readonly patienceMs: number;
  readonly clock: Pick<Clock, "schedule">;
}

/** Whether the limit of the upstream holds for it: not for what was sold, nor for probes. */
export interface RequestTerms {
  readonly isBound: boolean;
}

/**
 * The places at an upstream that the requests of one attempt have. One is its own for as long as it
 * runs; more are taken where parts of a call run at once, and given back one by one.
 */
export class RequestPlaces {
  readonly #upstream: UpstreamPlaces;
  readonly #isBound: boolean;
  #taken: number;
  /** Of these, what it keeps though no request is under way. */
  #kept: number;
  #open = 0;
  #waiting: Set<() => void> | undefined;

  /** `taken`: places that were taken for it and that it keeps, one or none. */
  constructor(upstream: UpstreamPlaces, isBound: boolean, taken: 0 | 1) {
    this.#upstream = upstream;
    this.#isBound = isBound;
    this.#taken = taken;
    this.#kept = taken;
  }

  /** Takes places for so many requests at once, as far as there are any; how many it has then. */
  extend(count: number): number {
    while (this.#taken < count && this.#upstream.tryTake()) this.#taken += 1;
    return Math.max(1, this.#taken);
  }

  /** False when there is none now. Each that is opened must be closed once. */
  tryOpen(): boolean {
    if (this.#open >= this.#taken) {
      if (!this.#isBound) this.#upstream.take();
      else if (!this.#upstream.tryTake()) return false;
      this.#taken += 1;
    }
    this.#open += 1;
    return true;
  }

  /** As `tryOpen`, once there is a place; false when the time is over or the signal has fired. */
  whenOpen({ callerSignal, patienceMs, clock }: RequestWait): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (isOpen: boolean): void => {
        cancel();
        callerSignal.removeEventListener("abort", giveUp);
        this.#waiting?.delete(look);
        this.#upstream.forget(look);
        resolve(isOpen);
      };
      const look = (): void => {
        if (this.tryOpen()) end(true);
        else this.#upstream.whenFree(look);
      };
      const giveUp = (): void => end(false);
      const cancel = clock.schedule(giveUp, patienceMs);
      callerSignal.addEventListener("abort", giveUp, { once: true });
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

  /** Keeps none any more: those of requests that are still under way go when they end. */
  release(): void {
    this.#kept = 0;
    while (this.#taken > this.#open) {
      this.#taken -= 1;
      this.#upstream.giveBack();
    }
  }
}
