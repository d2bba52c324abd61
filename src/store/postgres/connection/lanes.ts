import { StorageUnavailable } from "../../errors.ts";
import type { Lane } from "../../repositories/tables.ts";

/** Namespace of Sluice's advisory locks: the letters `Sluc`. */
const namespace = 0x53_6c_75_63;

const numbers: Readonly<Record<Lane | "schema" | "copy", number>> = {
  schema: 0,
  copy: 4,
  entities: 1,
  usage: 2,
  replies: 3,
};

/** The statement that waits for a lane; the end of the transaction leaves it. */
export function lockOf(lane: Lane | "schema"): string {
  return `SELECT pg_advisory_xact_lock(${namespace}, ${numbers[lane]})`;
}

/** The statement that begins a change which may run beside any other. */
export const beginUnordered = "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE";

/**
 * The statements that begin a change in a lane. Read committed, so that each later statement sees
 * what was committed during the wait; a database or a user may have another default.
 */
export function beginIn(lane: Lane | "schema"): string {
  return `${beginUnordered}; ${lockOf(lane)}`;
}

/** The statements that begin a transaction which keeps all others from changes. */
export const beginAlone = [beginIn("entities"), lockOf("usage"), lockOf("replies")].join("; ");

/** The statement that keeps other copies from the database until the connection ends. */
export const beginCopying = `SELECT pg_advisory_lock(${namespace}, ${numbers.copy})`;

/** Transactions of one lane in this process, so that waiting takes no connection of the pool. */
export class LaneQueue {
  readonly #longestWaitMs: number;
  readonly #last = new Map<Lane, Promise<unknown>>();

  constructor(longestWaitMs: number) {
    this.#longestWaitMs = longestWaitMs;
  }

  /** Throws `StorageUnavailable` when the turn does not come in time; then `task` never runs. */
  run<Result>(lane: Lane, task: () => Promise<Result>): Promise<Result> {
    const waiting = Promise.withResolvers<void>();
    const timer = setTimeout(() => {
      waiting.reject(new StorageUnavailable("the changes before this one take too long"));
    }, this.#longestWaitMs);
    void this.idle(lane).then(waiting.resolve);
    const result = waiting.promise.finally(() => clearTimeout(timer)).then(task);
    // Whoever gave up leaves the place to those before it.
    const settled = Promise.all([this.idle(lane), result.catch(() => undefined)]);
    this.#last.set(lane, settled);
    return result;
  }

  /** Resolves once all that is in the lane now has ended. */
  async idle(lane: Lane): Promise<void> {
    await this.#last.get(lane);
  }
}
