import type { Clock } from "../../../domain/clock.ts";

/** Longer than a slot counts: what was charged before is in no window any more. */
export const trustAfterMs = 61_000;
/** So many failures in a row, each at least a time-out after the one before, are a loss. */
const mostFailures = 5;

export interface TrustOptions {
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Called once for each new reason not to trust the server; at first sight it may just be new. */
  readonly onAlone?: (reason: string, isFirstSight: boolean) => void;
  /** Called when the server is trusted, at the start and after each loss. */
  readonly onShared?: () => void;
}

/**
 * Whether the server decides. Any loss of it or of its data has one answer: until 61 s after the
 * last bad reply it only hears what the process grants by itself. By then it knows everything that
 * still counts.
 */
export class Trust {
  readonly #options: TrustOptions;
  #badUntil = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #failedAt = -Infinity;
  #answers = false;
  #reason: string | undefined;
  #isTold = false;
  #isFirstSight = true;

  constructor(options: TrustOptions) {
    this.#options = options;
  }

  /** Whether the last command was answered, by a server that was looked at. */
  get answers(): boolean {
    return this.#answers;
  }

  get decides(): boolean {
    return this.#answers && this.#options.clock.monotonic() >= this.#badUntil;
  }

  /** When the server decides again after a loss, or when it did. */
  get since(): number {
    return this.#badUntil;
  }

  /** How long the server does not decide at least. */
  get waitMs(): number {
    const now = this.#options.clock.monotonic();
    return Math.max(this.#badUntil - now, this.#answers ? 0 : 1_000);
  }

  /** The server was looked at, and has had all of its data for so long. */
  looked(ageMs: number): void {
    this.#answers = true;
    this.#failures = 0;
    this.young(ageMs);
    if (!this.decides || this.#isTold) return;
    this.#isTold = true;
    this.#isFirstSight = false;
    this.#reason = undefined;
    this.#options.onShared?.();
  }

  /** The server has had all of its data for so long only. */
  young(ageMs: number): void {
    if (ageMs >= trustAfterMs) return;
    this.#lose("it has lost its data, or is new", trustAfterMs - ageMs);
  }

  /** A command was not answered in time, or a connection was lost: a look comes first. */
  failed(reason: string): void {
    const now = this.#options.clock.monotonic();
    this.#answers = false;
    if (now - this.#failedAt < this.#options.timeoutMs) return;
    this.#failedAt = now;
    this.#failures += 1;
    this.#isFirstSight = false;
    if (this.#failures >= mostFailures) this.#lose(reason, trustAfterMs);
  }

  /** A connection was lost or made: a look comes first. */
  disconnected(): void {
    this.#answers = false;
  }

  #lose(reason: string, forMs: number): void {
    const until = this.#options.clock.monotonic() + forMs;
    this.#badUntil = Math.max(this.#badUntil, until);
    this.#isTold = false;
    if (this.#reason === reason) return;
    this.#reason = reason;
    this.#options.onAlone?.(reason, this.#isFirstSight);
    this.#isFirstSight = false;
  }
}
