import type { CapacityClass } from "../../domain/usage.ts";
import type { EnterResult, PlaceRequest } from "./place.ts";

export interface WaiterParts {
  readonly request: PlaceRequest;
  /** In the queue, from 1. */
  readonly position: number;
  /** Monotonic milliseconds. */
  readonly since: number;
}

/** A call that waits for a place; it ends once, with the place or without. */
export class Waiter {
  readonly request: PlaceRequest;
  readonly position: number;
  readonly since: number;
  readonly result: Promise<EnterResult>;
  readonly #resolve: (result: EnterResult) => void;
  readonly #reject: (error: unknown) => void;
  #isOver = false;
  /** Frees what would have ended the wait otherwise. */
  onOver: (() => void) | undefined;

  constructor({ request, position, since }: WaiterParts) {
    this.request = request;
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

  get accountId(): string {
    return this.request.accountId;
  }

  get tokens(): number {
    return this.request.tokens;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  end(result: EnterResult): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.onOver?.();
    this.#resolve(result);
  }

  fail(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.onOver?.();
    this.#reject(error);
  }
}
