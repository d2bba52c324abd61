import type { EndSignal } from "../domain/waiting/end-signal.ts";
import type { Clock } from "../domain/clock.ts";
import { UpstreamFailure } from "../domain/errors/upstream-failure.ts";
import type { Timeouts } from "../domain/upstream-settings.ts";
import type { Cancellable, RequestProgress } from "./transport.ts";

export interface WatchdogOptions {
  readonly timeouts: Timeouts;
  /** Deadline of the whole call in monotonic milliseconds, the same for each of its attempts. */
  readonly endsAt: number;
  readonly clock: Clock;
  /** Aborts the attempt when the caller disconnects. */
  readonly callerSignal: EndSignal;
  /** The one of the attempt's request is closed once, when the attempt is over. */
  readonly places: { close(): void };
}

/**
 * Enforces the deadlines of one attempt: connect, first byte, idle and total. One timer serves all
 * four and is only reset when it fires, for a new connection and at the first byte, so a chunk costs
 * one clock read.
 */
export class Watchdog implements RequestProgress {
  readonly #options: WatchdogOptions;
  /** Made when first needed. */
  #controller: AbortController | undefined;
  #request: Cancellable | undefined;
  readonly #startedAt: number;
  readonly #onCallerLeft = (): void => this.abort();
  #silentSince: number;
  #isAnswering = false;
  /** Since when a connection is being opened for it. */
  #connectFrom: number | undefined;
  /** Whether a reader waits for the next chunk. */
  #isAwaited = false;
  #cancelTimer: (() => void) | undefined;
  #failure: UpstreamFailure | undefined;
  #isStopped = false;
  #isAborted = false;

  constructor(options: WatchdogOptions) {
    this.#options = options;
    this.#startedAt = options.clock.monotonic();
    this.#silentSince = this.#startedAt;
    const { callerSignal } = options;
    if (callerSignal.aborted) this.#isAborted = true;
    else callerSignal.addEventListener("abort", this.#onCallerLeft, { once: true });
    this.#arm();
  }

  /** Aborts when the attempt ends early. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#isAborted) this.#controller.abort();
    return this.#controller.signal;
  }

  /** Whether the attempt was ended early. */
  get isAborted(): boolean {
    return this.#isAborted;
  }

  started(request: Cancellable): void {
    this.#request = request;
  }

  connecting(): void {
    if (this.#isStopped || this.#connectFrom !== undefined) return;
    this.#connectFrom = this.#options.clock.monotonic();
    this.#cancelTimer?.();
    this.#arm();
  }

  /** The deadline that ended the attempt, if one did. */
  get failure(): UpstreamFailure | undefined {
    return this.#failure;
  }

  connected(): void {
    this.#connectFrom = undefined;
  }

  /** A chunk arrived. The idle time does not run until the next one is awaited. */
  progress(): void {
    this.#isAwaited = false;
    if (this.#isAnswering || this.#isStopped) return;
    this.#isAnswering = true;
    // The idle timeout may be shorter than what is left of the first-byte timeout.
    this.#cancelTimer?.();
    this.#arm();
  }

  /** The reader awaits the next chunk: idle time now is the upstream's, not a slow reader's. */
  awaited(): void {
    if (this.#isAwaited) return;
    this.#isAwaited = true;
    this.#silentSince = this.#options.clock.monotonic();
  }

  /** The attempt is over, successful or not. Aborts nothing. */
  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#cancelTimer?.();
    this.#options.callerSignal.removeEventListener("abort", this.#onCallerLeft);
    this.#options.places.close();
  }

  /** Ends the attempt and aborts its request. */
  abort(): void {
    this.stop();
    if (this.#isAborted) return;
    this.#isAborted = true;
    this.#controller?.abort();
    this.#request?.cancel();
  }

  #arm(): void {
    const { clock } = this.#options;
    const waitMs = this.#nextDeadline() - clock.monotonic();
    this.#cancelTimer = clock.schedule(() => this.#onTimer(), Math.max(1, waitMs));
  }

  #nextDeadline(): number {
    const { timeouts, endsAt, clock } = this.#options;
    if (this.#isAnswering) {
      const since = this.#isAwaited ? this.#silentSince : clock.monotonic();
      return Math.min(endsAt, since + timeouts.idleMs);
    }
    const firstByteAt = Math.min(endsAt, this.#startedAt + timeouts.firstByteMs);
    if (this.#connectFrom === undefined) return firstByteAt;
    return Math.min(firstByteAt, this.#connectFrom + timeouts.connectMs);
  }

  #onTimer(): void {
    const now = this.#options.clock.monotonic();
    if (now < this.#nextDeadline()) return this.#arm();
    const { timeouts, endsAt } = this.#options;
    if (now >= endsAt) {
      return this.#end("timed-out", "the answer took longer than timeouts.total");
    }
    if (this.#isAnswering) {
      return this.#end("timed-out", "the answer was silent for longer than timeouts.idle");
    }
    if (this.#connectFrom !== undefined && now - this.#connectFrom >= timeouts.connectMs) {
      return this.#end("connect-failed", "no connection could be opened within timeouts.connect");
    }
    this.#end("timed-out", "no answer came within timeouts.first_byte");
  }

  #end(kind: "timed-out" | "connect-failed", message: string): void {
    this.#failure = new UpstreamFailure({ kind, message, hint: message });
    this.abort();
  }
}
