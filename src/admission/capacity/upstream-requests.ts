import type { Clock } from "../../domain/clock.ts";
import type { EndSignal } from "../../domain/waiting/end-signal.ts";
import type { Gate, Taking, WaitEnd } from "../../domain/waiting/gate.ts";
import type { UpstreamPlaces } from "./upstream-places.ts";

/** How a request waits for a place. */
export interface RequestWait {
  readonly callerSignal: EndSignal;
  readonly waitMs: number;
  readonly clock: Clock;
}

/** Whether the limit of the upstream applies: it does not within guarantees, nor to probes. */
export interface RequestTerms {
  readonly isBound: boolean;
}

/**
 * The places of one attempt's requests at an upstream. One is held while the attempt runs; more are
 * taken where parts of a call run at once, and given back one by one.
 */
export class UpstreamRequests {
  readonly #upstream: UpstreamPlaces;
  readonly #isBound: boolean;
  #taken: number;
  /** Of these, how many are kept while no request is under way. */
  #kept: number;
  #open = 0;
  #isLeft = false;
  /** Where its requests have waited. */
  #gate: Gate | undefined;

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
  whenOpen({ callerSignal: signal, waitMs, clock }: RequestWait): Promise<boolean> {
    const gate = this.#upstream.requests(clock);
    this.#gate = gate;
    return new Promise((resolve) => {
      const take = (): Taking => {
        if (this.tryOpen()) return "taken";
        this.#upstream.whenFree(gate);
        return "next";
      };
      const ended = (how: WaitEnd): void => resolve(how === "served");
      gate.wait({ group: "", take, ended }, { signal, waitMs });
    });
  }

  close(): void {
    this.#open -= 1;
    if (this.#taken > this.#kept) {
      this.#taken -= 1;
      this.#upstream.giveBack();
    } else this.#gate?.serve();
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
