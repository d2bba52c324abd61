import type { Clock } from "../domain/clock.ts";
import { UpstreamFailure } from "../domain/errors/upstream-failure.ts";
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
  /**
   * Whether the host has taken a connection since the attempt began; known at `until` (monotonic
   * milliseconds) at the latest. Asked once, when half of the connect time has brought no answer.
   */
  readonly canConnect: (time: { since: number; until: number }) => Promise<boolean>;
}

/**
 * The part of the connect time that is waited before the host is asked: late enough that most
 * answers are there, early enough that a lost packet of the question can be sent again.
 */
const quietShare = 0.5;

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
  #phase: "quiet" | "waiting" | "answering" = "quiet";
  /** Whether the upstream has answered anything, its headers at least. */
  #isConnected = false;
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

  /** The headers of an answer have come: the host is there, however long its body takes. */
  connected(): void {
    this.#isConnected = true;
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
      case "quiet":
        return Math.min(total, this.#startedAt + this.#quietMs());
      case "waiting":
        return Math.min(total, this.#startedAt + timeouts.firstByteMs);
      case "answering": {
        const { clock } = this.#options;
        const since = this.#isAwaited ? this.#silentSince : clock.monotonic();
        return Math.min(total, since + timeouts.idleMs);
      }
    }
  }

  /** Behind an egress proxy the connect time is set as high as the other, and nobody is asked. */
  #quietMs(): number {
    const { connectMs, firstByteMs } = this.#options.timeouts;
    return connectMs < firstByteMs ? connectMs * quietShare : firstByteMs;
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
    this.#arm();
    if (!this.#isConnected) void this.#askHost();
  }

  /** A missing answer is either a slow model or a host that is not there. */
  async #askHost(): Promise<void> {
    const { canConnect, timeouts } = this.#options;
    const since = this.#startedAt;
    const hasAnswered = await canConnect({ since, until: since + timeouts.connectMs });
    if (hasAnswered || this.#isConnected || this.#isStopped) return;
    this.#end("connect-failed", "no connection could be opened within timeouts.connect");
  }

  #end(kind: "timed-out" | "connect-failed", message: string): void {
    this.#failure = new UpstreamFailure({ kind, message, hint: message });
    this.abort();
  }
}
