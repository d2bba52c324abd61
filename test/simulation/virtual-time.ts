import { drainMicrotasks } from "bun:jsc";
import type { Clock } from "../../src/domain/clock.ts";

interface Entry {
  readonly at: number;
  /** Breaks ties: first scheduled, first run. */
  readonly order: number;
  run: (() => void) | undefined;
}

/** The time of a run, which advances only when nothing more can happen at the current time. */
export class VirtualTime {
  #now = 0;
  #order = 0;
  /** A binary heap: the next entry first. */
  readonly #heap: Entry[] = [];
  #steps = 0;

  get now(): number {
    return this.#now;
  }

  /** The number of entries that were run. */
  get steps(): number {
    return this.#steps;
  }

  schedule(run: () => void, delayMs: number): () => void {
    const at = this.#now + Math.max(0, delayMs);
    const entry: Entry = { at, order: this.#order, run };
    this.#order += 1;
    this.#push(entry);
    return () => (entry.run = undefined);
  }

  /** Resolves after a time. */
  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.schedule(resolve, delayMs));
  }

  /**
   * Runs due entries in order until `isOver` returns true or none is left. Between two entries all
   * pending microtasks run: nothing in a run needs the event loop.
   */
  runUntil(isOver: () => boolean, limits: { untilMs: number; steps: number }): void {
    drainMicrotasks();
    while (!isOver()) {
      const next = this.#heap[0];
      if (next === undefined || next.at > limits.untilMs || this.#steps >= limits.steps) return;
      this.#pop();
      const { run } = next;
      if (run === undefined) continue;
      this.#now = next.at;
      this.#steps += 1;
      run();
      drainMicrotasks();
    }
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let index = heap.push(entry) - 1;
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || isBefore(parent, entry)) break;
      heap[index] = parent;
      index = above;
    }
    heap[index] = entry;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let index = 0;
    for (;;) {
      const left = heap[2 * index + 1];
      const right = heap[2 * index + 2];
      if (left === undefined) break;
      const isRight = right !== undefined && isBefore(right, left);
      const child = isRight ? right : left;
      if (isBefore(last, child)) break;
      heap[index] = child;
      index = 2 * index + (isRight ? 2 : 1);
    }
    heap[index] = last;
  }
}

function isBefore(one: Entry, other: Entry): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order);
}

/**
 * The clocks of one process. Its wall clock may jump, its monotonic clock starts anywhere, and its
 * timers end with it.
 */
export class ProcessClock implements Clock {
  readonly #time: VirtualTime;
  readonly #monotonicOffset: number;
  #wallOffset: number;
  #isRunning = true;

  constructor(time: VirtualTime, offsets: { monotonicMs: number; wallMs: number }) {
    this.#time = time;
    this.#monotonicOffset = offsets.monotonicMs;
    this.#wallOffset = offsets.wallMs;
  }

  readonly now = (): number => Math.floor(this.#time.now + this.#wallOffset);

  readonly monotonic = (): number => this.#time.now + this.#monotonicOffset;

  schedule(run: () => void, delayMs: number): () => void {
    return this.#time.schedule(() => {
      if (this.#isRunning) run();
    }, delayMs);
  }

  jumpWall(differenceMs: number): void {
    this.#wallOffset += differenceMs;
  }

  /** Converts to the time of the run. */
  toVirtual(monotonicMs: number): number {
    return monotonicMs - this.#monotonicOffset;
  }

  stop(): void {
    this.#isRunning = false;
  }
}
