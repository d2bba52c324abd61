import type { Clock } from "../../domain/clock.ts";
import type { CapacityClass } from "../../domain/usage/usage.ts";
import type { BusyReason, EnterResult, PlaceRequest, PlaceWait } from "./place.ts";
import type { UpstreamPlaces } from "../places/upstream-places.ts";

export type WaitEnd = Pick<PlaceWait, "signal" | "waitMs">;

/** How a wait in a queue ended. */
export interface Waited {
  readonly capacityClass: CapacityClass;
  readonly waitedMs: number;
  readonly outcome: "served" | BusyReason;
}

export interface WaiterParts {
  readonly request: PlaceRequest;
  readonly upstream: UpstreamPlaces;
  /** Its position in the queue, from 1. */
  readonly position: number;
  /** Monotonic milliseconds. */
  readonly since: number;
}

/** A call that waits for a place; it ends once, with or without a place. */
export class Waiter {
  readonly request: PlaceRequest;
  readonly upstream: UpstreamPlaces;
  readonly position: number;
  readonly since: number;
  readonly result: Promise<EnterResult>;
  readonly #resolve: (result: EnterResult) => void;
  readonly #reject: (error: unknown) => void;
  #isOver = false;
  #disarm: (() => void) | undefined;

  constructor({ request, upstream, position, since }: WaiterParts) {
    this.request = request;
    this.upstream = upstream;
    this.position = position;
    this.since = since;
    const { promise, resolve, reject } = Promise.withResolvers<EnterResult>();
    this.result = promise;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  get capacityClass(): CapacityClass {
    return this.request.capacityClass;
  }

  get keyId(): string {
    return this.request.keyId;
  }

  get accountId(): string {
    return this.request.accountId;
  }

  get tokens(): number {
    return this.request.tokens;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Calls `onGone` after the timeout or when the caller leaves, unless it is over before. */
  watch(
    { signal, waitMs }: WaitEnd,
    clock: Pick<Clock, "schedule">,
    onGone: (reason: "left" | "deadline") => void,
  ): void {
    const onAbort = (): void => onGone("left");
    const cancel = clock.schedule(() => onGone("deadline"), waitMs);
    signal.addEventListener("abort", onAbort, { once: true });
    this.#disarm = () => {
      cancel();
      signal.removeEventListener("abort", onAbort);
    };
  }

  end(result: EnterResult): void {
    if (this.#finish()) this.#resolve(result);
  }

  fail(error: unknown): void {
    if (this.#finish()) this.#reject(error);
  }

  #finish(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#disarm?.();
    return true;
  }
}
