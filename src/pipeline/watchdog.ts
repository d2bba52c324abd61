import type { Clock } from "../domain/clock.ts";
import { UpstreamFailure } from "../domain/upstream-failure.ts";
import type { Timeouts } from "../domain/upstream-settings.ts";

export interface WatchdogOptions {
  readonly timeouts: Timeouts;
  /** Monotonic milliseconds at which the call's time is over, whenever the attempt began. */
  readonly endsAt: number;
  readonly clock: Clock;
  /** Fires when the caller leaves; ends the attempt as well. */
  readonly callerSignal: AbortSignal;
  /** Told once, when the attempt is over. */
  readonly onStop: () => void;
  /** Asked once, when an attempt has waited the connect time without an answer. */
  readonly canConnect: () => Promise<boolean>;
}

/**
 * Holds one attempt to its deadlines: connect, first byte, silence between pieces, and the end of
 * the call's time. One timer serves them all and is set again when it fires and at the first byte,
 * so that each further piece costs a clock reading.
 */
export class Watchdog {
  readonly #options: WatchdogOptions;
  readonly #controller = new AbortController();
  readonly #startedAt: number;
  readonly #onCallerLeft = (): void => this.abort();
  #silentSince: number;
  #phase: "connecting" | "waiting" | "answering" = "connecting";
  /** Whether somebody waits for the next piece of the answer. */
  #isAwaited = false;
  #cancelTimer: () => void = () => undefined;
  #failure: UpstreamFailure | undefined;
  #isStopped = false;

  constructor(options: WatchdogOptions) {
    this.#options = options;
    this.#startedAt = options.clock.monotonic();
    this.#silentSince = this.#startedAt;
    const { callerSignal } = options;
    if (callerSignal.aborted) this.#controller.abort();
    else callerSignal.addEventListener("abort", this.#onCallerLeft, { once: true });
    this.#arm();
  }

  /** Ends what runs under it. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Why the attempt was ended, if a deadline ended it. */
  get failure(): UpstreamFailure | undefined {
    return this.#failure;
  }

  /** A piece of the answer has come. What comes after it may lie ready until it is asked for. */
  progress(): void {
    this.#isAwaited = false;
    if (this.#phase === "answering" || this.#isStopped) return;
    this.#phase = "answering";
    // Silence may be allowed for less time than is left for the first byte.
    this.#cancelTimer();
    this.#arm();
  }

  /** The next piece is asked for: from now on silence is the upstream's, not a slow reader's. */
  awaited(): void {
    this.#isAwaited = true;
    this.#silentSince = this.#options.clock.monotonic();
  }

  /** The attempt is over, well or not. Aborts nothing. */
  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#cancelTimer();
    this.#options.callerSignal.removeEventListener("abort", this.#onCallerLeft);
    this.#options.onStop();
  }

  /** Ends the attempt now. */
  abort(): void {
    this.stop();
    this.#controller.abort();
  }

  #arm(): void {
    const { clock } = this.#options;
    const waitMs = this.#nextDeadline() - clock.monotonic();
    this.#cancelTimer = clock.schedule(() => this.#onTimer(), Math.max(1, waitMs));
  }

  #nextDeadline(): number {
    const { timeouts, endsAt: total } = this.#options;
    switch (this.#phase) {
      case "connecting":
        return Math.min(
          total,
          this.#startedAt + Math.min(timeouts.connectMs, timeouts.firstByteMs),
        );
      case "waiting":
        return Math.min(total, this.#startedAt + timeouts.firstByteMs);
      case "answering": {
        const { clock } = this.#options;
        const since = this.#isAwaited ? this.#silentSince : clock.monotonic();
        return Math.min(total, since + timeouts.idleMs);
      }
    }
  }

  #onTimer(): void {
    const now = this.#options.clock.monotonic();
    if (now < this.#nextDeadline()) return this.#arm();
    const { timeouts, endsAt } = this.#options;
    const waitedMs = now - this.#startedAt;
    if (now >= endsAt) {
      return this.#end("timed-out", "the answer took longer than timeouts.total");
    }
    if (this.#phase === "answering") {
      return this.#end("timed-out", "the answer was silent for longer than timeouts.idle");
    }
    if (waitedMs >= timeouts.firstByteMs) {
      return this.#end("timed-out", "no answer came within timeouts.first_byte");
    }
    this.#phase = "waiting";
    this.#probe();
    this.#arm();
  }

  /** A missing answer after the connect time is either a slow model or a host that is not there. */
  #probe(): void {
    this.#options.canConnect().then(
      (isReachable) => {
        if (!isReachable && this.#phase === "waiting") {
          this.#end("connect-failed", "no connection could be opened within timeouts.connect");
        }
      },
      () => undefined,
    );
  }

  #end(kind: "timed-out" | "connect-failed", message: string): void {
    this.#failure = new UpstreamFailure({ kind, message, hint: message });
    this.abort();
  }
}
