import type { Clock } from "../../../../domain/clock.ts";
import type { WorkerShare } from "../../part-of-config.ts";

export interface ExchangePaceOptions {
  readonly clock: Pick<Clock, "monotonic" | "schedule">;
  /** Which of how many processes this one is. */
  readonly rank: () => WorkerShare;
}

/** Between two exchanges of a process without news: for each process that there is, and its bounds. */
const gapMsOfProcess = 5;
const [shortestGapMs, longestGapMs] = [20, 900];
/** For each process: all together exchange within this time. */
const turnMsOfProcess = 2;
const longestRestMs = 2_000;
/** Within this time all processes tell a store what they have that has lost it. */
const lostMs = 700;

/**
 * When a process exchanges what it has of a bound. The more processes there are, the longer the
 * server takes for each exchange, so the more seldom each begins one.
 */
export class ExchangePace {
  readonly #options: ExchangePaceOptions;
  #isPlanned = false;
  #turns = 0;
  #restMs = 0;
  #restsUntil = Number.NEGATIVE_INFINITY;

  constructor(options: ExchangePaceOptions) {
    this.#options = options;
  }

  /** How long an exchange that granted too little is not repeated without news. */
  get gapMs(): number {
    const { workers } = this.#options.rank();
    return Math.min(longestGapMs, Math.max(shortestGapMs, gapMsOfProcess * workers));
  }

  /** Whether none begins: the last ones failed, and the server may have too much to do. */
  get isResting(): boolean {
    return this.#options.clock.monotonic() < this.#restsUntil;
  }

  /** Runs something that all processes do at the same time, once, and each in its turn. */
  inTurn(run: () => void): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    const { clock, rank } = this.#options;
    const { number, workers } = rank();
    this.#turns += 1;
    // Another one is the first each time.
    const turn = (number + this.#turns) % workers;
    clock.schedule(() => {
      this.#isPlanned = false;
      run();
    }, turn * turnMsOfProcess);
  }

  /** Whether the last exchange failed. */
  get hasFailed(): boolean {
    return this.#restMs > 0;
  }

  answered(): void {
    this.#restMs = 0;
  }

  failed(): void {
    this.#restMs = Math.min(longestRestMs, Math.max(this.gapMs, 2 * this.#restMs));
    this.#rest(this.#restMs);
  }

  /** The store did not know what this process had, nor what others have. */
  lost(): void {
    this.#rest(lostMs);
  }

  /** The server is there again. */
  wake(): void {
    this.#restsUntil = Number.NEGATIVE_INFINITY;
  }

  #rest(durationMs: number): void {
    this.#restsUntil = this.#options.clock.monotonic() + durationMs;
  }
}
