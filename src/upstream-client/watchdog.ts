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
  /** Called once, when the attempt is over. */
  readonly onStop: () => void;
  /**
   * Whether the host has accepted a connection since the attempt began; resolves by `until`
   * (monotonic milliseconds). Called once, after half of the connect timeout without an answer, for
   * a request on a kept connection: its host may be gone.
   */
  readonly canConnect: (time: { since: number; until: number }) => Promise<boolean>;
}

/**
 * Share of the connect timeout that passes before the host is probed: late enough that most answers
 * have arrived, early enough that a lost packet of the probe can be sent again.
 */
const quietShare = 0.5;

/**
 * Enforces the deadlines of one attempt: connect, first byte, idle and total. One timer serves all
 * four and is only reset when it fires and at the first byte, so a chunk costs one clock read.
 */
export class Watchdog implements RequestProgress {
  readonly #options: WatchdogOptions;
  /** Made when first needed. */
  #controller: AbortController | undefined;
  #request: Cancellable | undefined;
  readonly #startedAt: number;
  readonly #onCallerLeft = (): void => this.abort();
  #silentSince: number;
  #phase: "quiet" | "waiting" | "answering" = "quiet";
  /** Whether the host has accepted a connection for the attempt, or has sent anything. */
  #isConnected = false;
  /** Whether a connection is being opened for it. */
  #isConnecting = false;
  /** The start of the time in which a connection must be opened. */
  #connectFrom: number;
  /** Whether a reader waits for the next chunk. */
  #isAwaited = false;
  #cancelTimer: () => void = () => undefined;
  #failure: UpstreamFailure | undefined;
  #isStopped = false;
  #isAborted = false;

  constructor(options: WatchdogOptions) {
    this.#options = options;
    this.#startedAt = options.clock.monotonic();
    this.#silentSince = this.#startedAt;
    this.#connectFrom = this.#startedAt;
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
    this.#isConnecting = true;
    if (this.#phase !== "waiting") return;
    // The kept connection was dead: the new one has a time of its own.
    this.#phase = "quiet";
    this.#connectFrom = this.#options.clock.monotonic();
    this.#cancelTimer();
    this.#arm();
  }

  /** The deadline that ended the attempt, if one did. */
  get failure(): UpstreamFailure | undefined {
    return this.#failure;
  }

  /** The host is up, however long its answer takes. */
  connected(): void {
    this.#isConnected = true;
    this.#isConnecting = false;
  }

  /** A chunk arrived. The idle time does not run until the next one is awaited. */
  progress(): void {
    this.#isAwaited = false;
    if (this.#phase === "answering" || this.#isStopped) return;
    this.#phase = "answering";
    // The idle timeout may be shorter than what is left of the first-byte timeout.
    this.#cancelTimer();
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
    this.#cancelTimer();
    this.#options.callerSignal.removeEventListener("abort", this.#onCallerLeft);
    this.#options.onStop();
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
    const { timeouts, endsAt: total } = this.#options;
    switch (this.#phase) {
      case "quiet":
        return Math.min(total, this.#connectFrom + this.#quietMs());
      case "waiting":
        return Math.min(total, this.#startedAt + timeouts.firstByteMs);
      case "answering": {
        const { clock } = this.#options;
        const since = this.#isAwaited ? this.#silentSince : clock.monotonic();
        return Math.min(total, since + timeouts.idleMs);
      }
    }
  }

  /** Hosts are not probed where both timeouts are equal. */
  #quietMs(): number {
    const { connectMs, firstByteMs } = this.#options.timeouts;
    if (this.#isConnecting) return Math.min(connectMs, firstByteMs);
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
    if (this.#isConnecting && now - this.#connectFrom >= timeouts.connectMs) {
      return this.#end("connect-failed", notConnected);
    }
    if (waitedMs >= timeouts.firstByteMs) {
      return this.#end("timed-out", "no answer came within timeouts.first_byte");
    }
    this.#phase = "waiting";
    this.#arm();
    if (!this.#isConnected) void this.#askHost();
  }

  /** Distinguishes a slow model from an unreachable host. */
  async #askHost(): Promise<void> {
    const { canConnect, timeouts } = this.#options;
    const since = this.#startedAt;
    const hasAnswered = await canConnect({ since, until: since + timeouts.connectMs });
    if (hasAnswered || this.#isConnected || this.#isStopped) return;
    this.#end("connect-failed", notConnected);
  }

  #end(kind: "timed-out" | "connect-failed", message: string): void {
    this.#failure = new UpstreamFailure({ kind, message, hint: message });
    this.abort();
  }
}

const notConnected = "no connection could be opened within timeouts.connect";
