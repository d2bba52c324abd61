import type { Clock } from "../../domain/clock.ts";
import type { EndSignal } from "../../domain/waiting/end-signal.ts";
import { Gate, type Taking, type WaitEnd, WaitingGates } from "../../domain/waiting/gate.ts";

/** Where several processes share the places. */
interface SharedPlaces {
  askMore(): Promise<void> | undefined;
  /** A place was given back: called before those that wait for it are served, and after. */
  leaving(): void;
  left(): void;
}

/** Most further requests of running attempts that wait at one upstream. */
const mostWaiting = 10_000;

/** The places of an upstream: requests under way at once, up to a limit that a reload may change. */
export class UpstreamPlaces {
  #limit: number;
  #count = 0;
  /** Gates of pools, and that of requests, with turns that found no place here. */
  readonly #waiting = new WaitingGates();
  #requests: Gate | undefined;
  readonly #shared: SharedPlaces | undefined;
  readonly #hasFree = (): boolean => this.free > 0;

  constructor(limit: number, shared?: SharedPlaces) {
    this.#limit = limit;
    this.#shared = shared;
  }

  get limit(): number {
    return this.#limit;
  }

  set limit(limit: number) {
    this.#limit = limit;
    this.#waiting.serve(this.#hasFree);
  }

  get count(): number {
    return this.#count;
  }

  get free(): number {
    return Math.max(0, this.#limit - this.#count);
  }

  get waiting(): number {
    return this.#waiting.size + (this.#requests?.size ?? 0);
  }

  /** Where requests wait that belong to no call in a queue of a pool. */
  requests(clock: Clock): Gate {
    return (this.#requests ??= new Gate({ clock, limit: () => mostWaiting }));
  }

  /** Resolves when there may be more than before; undefined: no other process has any. */
  askMore(): Promise<void> | undefined {
    return this.#shared?.askMore();
  }

  /** False when there is none. Each that was taken must be given back once. */
  tryTake(): boolean {
    if (this.free === 0) return false;
    this.#count += 1;
    return true;
  }

  /** For calls within guarantees and probes, to which the limit does not apply. */
  take(): void {
    this.#count += 1;
  }

  giveBack(): void {
    this.#count -= 1;
    this.#shared?.leaving();
    if (this.#waiting.size > 0) this.#waiting.serve(this.#hasFree);
    this.#shared?.left();
  }

  /** Serves the gate once a place is free. */
  whenFree(gate: Gate): void {
    this.#waiting.add(gate);
    void this.askMore();
  }
}

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
