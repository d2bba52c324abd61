import type { Clock } from "../../domain/clock.ts";
import type { CapacityClass } from "../../domain/usage/usage.ts";
import type { Waiting } from "./fair-queue.ts";
import type { HeldPlace } from "./held-place.ts";
import type { BusyPool, BusyReason, EnterResult, PlaceAsk, PlaceRequest, Spot } from "./place.ts";

/** How a wait ended. It is counted for the queue that ended it. */
export interface Waited {
  readonly capacityClass: CapacityClass;
  readonly waitedMs: number;
  readonly outcome: "served" | BusyReason;
}

/** When a call that finds no place may try again: a place may come back at any time. */
export const busyRetryAfterMs = 1_000;

/** A queue of a pool. */
export interface PlaceQueue {
  /** The call's turn in this queue; it takes effect with `join`. */
  newTurn(waiter: Waiter, spots: readonly Spot[]): QueueTurn;
  join(turn: QueueTurn): void;
  remove(turn: QueueTurn): void;
  /** Serves waiting calls. */
  serve(): void;
  onWaited(waited: Waited): void;
}

/** A waiting call in one of its queues. */
export interface QueueTurn extends Waiting {
  readonly waiter: Waiter;
  readonly queue: PlaceQueue;
  /** The candidates of this pool, best first. */
  readonly spots: readonly Spot[];
  /** Its position in the queue, from 1. */
  readonly position: number;
}

/** A call that waits in the queues of all its pools; it ends once, with or without a place. */
export class Waiter {
  readonly request: PlaceRequest;
  readonly #clock: Clock;
  readonly #since: number;
  readonly #end = Promise.withResolvers<EnterResult<HeldPlace>>();
  /** In the order of its candidates. */
  readonly #turns = new Set<QueueTurn>();
  /** The refusal after which a retry may succeed soonest. */
  #refusal: BusyPool | undefined;
  #isOver = false;
  #disarm = (): void => undefined;

  constructor(request: PlaceRequest, clock: Clock) {
    this.request = request;
    this.#clock = clock;
    this.#since = clock.monotonic();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Waits in each of the queues. */
  wait(
    { signal, waitMs }: Pick<PlaceAsk, "signal" | "waitMs">,
    queues: ReadonlyMap<PlaceQueue, readonly Spot[]>,
  ): Promise<EnterResult<HeldPlace>> {
    const onAbort = (): void => this.#giveUp("left");
    const cancel = this.#clock.schedule(() => this.#giveUp("deadline"), waitMs);
    signal.addEventListener("abort", onAbort, { once: true });
    this.#disarm = () => {
      cancel();
      signal.removeEventListener("abort", onAbort);
    };
    for (const [queue, spots] of queues) this.#turns.add(queue.newTurn(this, spots));
    const turns = [...this.#turns];
    for (const turn of turns) if (!this.#isOver) turn.queue.join(turn);
    for (const { queue } of turns) queue.serve();
    return this.#end.promise;
  }

  served(turn: QueueTurn, place: HeldPlace, { at }: Spot): void {
    place.waitedMs = this.#waitedMs;
    place.position = turn.position;
    this.#turns.delete(turn);
    this.#report(turn, "served");
    this.#end.resolve({ place, at, refused: [] });
    this.#finish();
  }

  /** One of its queues no longer serves it; without another one, or its guarantee, it is refused. */
  refused(turn: QueueTurn, reason: BusyReason, retryAfterMs: number): void {
    if (!this.#turns.has(turn)) return;
    if (retryAfterMs < (this.#refusal?.retryAfterMs ?? Infinity) || this.#refusal === undefined) {
      this.#refusal = this.#busy(turn, reason, retryAfterMs);
    }
    const isLast = this.#turns.size === 1 || turn.capacityClass === "provisioned";
    if (isLast) return this.#refuse(turn, reason, this.#refusal);
    this.#turns.delete(turn);
    turn.queue.remove(turn);
    turn.queue.serve();
  }

  fail(error: unknown): void {
    if (this.#isOver) return;
    this.#end.reject(error);
    this.#finish();
  }

  #giveUp(reason: "left" | "deadline"): void {
    const [first] = this.#turns;
    if (first === undefined) return;
    const retryAfterMs = reason === "left" ? 0 : busyRetryAfterMs;
    this.#refuse(first, reason, this.#busy(first, reason, retryAfterMs));
  }

  #refuse(turn: QueueTurn, outcome: BusyReason, refusal: BusyPool): void {
    this.#report(turn, outcome);
    this.#end.resolve({ refused: [refusal] });
    this.#finish();
  }

  #finish(): void {
    this.#isOver = true;
    this.#disarm();
    const turns = [...this.#turns];
    this.#turns.clear();
    for (const turn of turns) turn.queue.remove(turn);
    // All others may have waited behind it.
    for (const { queue } of turns) queue.serve();
  }

  #busy({ position }: QueueTurn, reason: BusyReason, retryAfterMs: number): BusyPool {
    return { busy: reason, retryAfterMs, position, waitedMs: this.#waitedMs };
  }

  #report({ queue, capacityClass }: QueueTurn, outcome: Waited["outcome"]): void {
    queue.onWaited({ capacityClass, waitedMs: this.#waitedMs, outcome });
  }

  get #waitedMs(): number {
    return this.#clock.monotonic() - this.#since;
  }
}
