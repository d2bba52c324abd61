import type { Clock } from "../../domain/clock.ts";
import { Gate, WaitingGates } from "../../domain/waiting/gate.ts";

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

  /** Gates that wait for a place, and requests. */
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
