import type { Clock } from "../../../../domain/clock.ts";
import { nextTurn } from "../../../../domain/waiting/wait.ts";
import { ValkeyUnavailable } from "./valkey-errors.ts";

type Reject = (error: ValkeyUnavailable) => void;

/** Time-outs of commands. Commands of the same millisecond share a timer. */
export class Deadlines {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  #waiting = new Set<Reject>();
  #until = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, timeoutMs: number) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  /** Rejects with `ValkeyUnavailable` if the answer comes too late; `onLate` runs before. */
  within<Answer>(answer: Promise<Answer>, onLate: (error: ValkeyUnavailable) => void) {
    return new Promise<Answer>((resolve, reject) => {
      const waiting = this.#group();
      const late: Reject = (error) => {
        onLate(error);
        reject(error);
      };
      waiting.add(late);
      answer.then(resolve, reject).finally(() => waiting.delete(late));
    });
  }

  #group(): Set<Reject> {
    const now = this.#clock.monotonic();
    if (now < this.#until) return this.#waiting;
    this.#until = now + 1;
    const waiting = (this.#waiting = new Set());
    this.#clock.schedule(() => void this.#expire(waiting), this.#timeoutMs);
    return waiting;
  }

  async #expire(waiting: ReadonlySet<Reject>): Promise<void> {
    if (waiting.size === 0) return;
    // After a long turn of this process, its answers may be there and only not read yet.
    await nextTurn();
    await nextTurn();
    const error = new ValkeyUnavailable(`no answer within ${this.#timeoutMs} ms`);
    for (const late of waiting) late(error);
  }
}
