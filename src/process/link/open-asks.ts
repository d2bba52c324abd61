import type { Clock } from "../../domain/clock.ts";
import { LinkLost } from "./link-errors.ts";

interface OpenAsk {
  resolve(answer: unknown): void;
  reject(error: unknown): void;
  /** By the monotonic clock. */
  readonly until: number;
}

const sequences = 2 ** 32;

/** Asks that have no answer yet. One timer serves them all. */
export class OpenAsks {
  readonly #clock: Clock;
  readonly #asks = new Map<number, OpenAsk>();
  #sequence = 0;
  /** When the timer next checks for asks that have timed out. */
  #looksAt = Number.POSITIVE_INFINITY;
  #stopTimer = (): void => undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Rejects with what `send` throws, and with `LinkLost` when no answer arrives in time. */
  open<Answer>(timeoutMs: number, send: (sequence: number) => void): Promise<Answer> {
    this.#sequence = (this.#sequence + 1) % sequences;
    const sequence = this.#sequence;
    return new Promise<Answer>((resolve, reject) => {
      send(sequence);
      const now = this.#clock.monotonic();
      const until = now + timeoutMs;
      this.#asks.set(sequence, { resolve, reject, until });
      if (until < this.#looksAt) this.#lookAt(until, now);
    });
  }

  /** Undefined for one that was given up. */
  take(sequence: number): OpenAsk | undefined {
    const ask = this.#asks.get(sequence);
    if (ask !== undefined) this.#asks.delete(sequence);
    return ask;
  }

  failAll(reason: LinkLost): void {
    this.#stopTimer();
    this.#looksAt = Number.POSITIVE_INFINITY;
    const asks = [...this.#asks.values()];
    this.#asks.clear();
    for (const ask of asks) ask.reject(reason);
  }

  #lookAt(at: number, now: number): void {
    this.#stopTimer();
    this.#looksAt = at;
    this.#stopTimer = this.#clock.schedule(() => this.#look(), at - now);
  }

  #look(): void {
    this.#looksAt = Number.POSITIVE_INFINITY;
    const now = this.#clock.monotonic();
    let next = Number.POSITIVE_INFINITY;
    for (const [sequence, ask] of this.#asks) {
      if (ask.until > now) next = Math.min(next, ask.until);
      else {
        this.#asks.delete(sequence);
        ask.reject(new LinkLost("no answer came in time"));
      }
    }
    if (next < this.#looksAt) this.#lookAt(next, now);
  }
}
