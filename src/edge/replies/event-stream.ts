import type { Clock } from "../../domain/clock.ts";
import type { Flow } from "../../domain/waiting/flow.ts";

/** Complete server-sent events. Never throws: a failure comes as an error frame. */
export interface FrameSource extends Flow<string> {
  /** Stops producing. May be called at any time, more than once. */
  cancel(): void;
}

export interface EventStreamOptions {
  readonly clock: Pick<Clock, "monotonic">;
  /** Silence after which `keepAlive` is sent; 0 for never. */
  readonly keepAliveMs: number;
  /** `keepAliveComment`, or an empty chunk for clients that cannot parse comments. */
  readonly keepAlive: () => string;
  /** Sends a keep-alive first: the runtime holds the headers back until there is a body. */
  readonly beginsWithKeepAlive: boolean;
  /** How long a reader may leave a written event unread before it is cut off. */
  readonly writeTimeoutMs: number;
  /**
   * Called after the last event or when the reader is cut off; not when the reader leaves. False: the
   * connection of a reader that is cut off cannot be closed later, so that what was written is lost.
   */
  readonly onEnd: (end: StreamEnd) => boolean;
}

/** Whether a streamed body ended with its last byte or before it. */
export type StreamEnd = "whole" | "cut";

export const eventStreamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
} as const;

/** With its empty line: parsers that split at those would else join it with the next event. */
export const keepAliveComment = ": keep-alive\n\n";

/**
 * A response body that is written as soon as its source has events, in the same turn of the event
 * loop. Nothing is taken while the reader is behind, so its back-pressure reaches the source.
 */
export function eventStream(
  source: FrameSource,
  options: EventStreamOptions,
): ReadableStream<Uint8Array> {
  const writer = new EventStreamWriter(source, options);
  return new ReadableStream({
    type: "direct",
    pull: (sink) => writer.open(sink),
    cancel: () => writer.close(),
  });
}

class EventStreamWriter {
  readonly #source: FrameSource;
  readonly #options: EventStreamOptions;
  readonly #closed = Promise.withResolvers<void>();
  readonly #onReady = (): void => this.#pass();
  #sink: ReadableStreamDirectController | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #lastWriteAt: number;
  /** Whether the reader waits for the source; otherwise the reader is behind. */
  #isAwaiting = false;
  #isClosed = false;

  constructor(source: FrameSource, options: EventStreamOptions) {
    this.#source = source;
    this.#options = options;
    this.#lastWriteAt = options.clock.monotonic();
    this.#arm();
  }

  /** The runtime ends the body when this resolves. */
  open(sink: ReadableStreamDirectController): Promise<void> {
    this.#sink = sink;
    this.#isAwaiting = true;
    if (this.#options.beginsWithKeepAlive) this.#write(this.#options.keepAlive());
    this.#pass();
    return this.#closed.promise;
  }

  /** Ends the body. Safe at any time. */
  close(): void {
    this.#stop();
    this.#closed.resolve();
  }

  #stop(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#source.cancel();
  }

  /** Passes on available events, as long as the reader accepts them. */
  #pass(): void {
    while (this.#isAwaiting && !this.#isClosed) {
      const frames = this.#source.take();
      if (frames !== undefined) this.#write(frames);
      else if (this.#source.isOver) return this.#finish();
      else return this.#source.whenReady(this.#onReady);
    }
  }

  #finish(): void {
    this.#options.onEnd("whole");
    this.close();
  }

  /** One timer serves the whole stream: it checks the length of the silence and is armed again. */
  #arm(): void {
    const { keepAliveMs, writeTimeoutMs } = this.#options;
    const soonestMs = keepAliveMs > 0 ? Math.min(keepAliveMs, writeTimeoutMs) : writeTimeoutMs;
    const delayMs = Math.min(soonestMs, Math.max(1, this.#silenceLimitMs() - this.#silenceMs()));
    this.#timer = setTimeout(() => this.#onTimer(), delayMs);
  }

  #silenceMs(): number {
    return this.#options.clock.monotonic() - this.#lastWriteAt;
  }

  /** Longest silence before a keep-alive while the reader waits, else before the cut. */
  #silenceLimitMs(): number {
    const { keepAliveMs, writeTimeoutMs } = this.#options;
    return this.#isAwaiting && keepAliveMs > 0 ? keepAliveMs : writeTimeoutMs;
  }

  #onTimer(): void {
    // Timers may fire a fraction of a millisecond early.
    const isDue = this.#silenceMs() + 1 >= this.#silenceLimitMs();
    if (isDue && !this.#isAwaiting) return this.#cutOff();
    if (isDue && this.#options.keepAliveMs > 0) this.#write(this.#options.keepAlive());
    this.#arm();
  }

  #write(frames: string): void {
    this.#lastWriteAt = this.#options.clock.monotonic();
    const written = this.#sink?.write(frames);
    if (!(written instanceof Promise)) return;
    this.#isAwaiting = false;
    void written.then(() => {
      this.#isAwaiting = true;
      this.#pass();
    });
  }

  /** Leaves the body without an end: a proper end would hide the cut. */
  #cutOff(): void {
    this.#stop();
    if (!this.#options.onEnd("cut")) this.#sink?.close(new Error("the reader was cut off"));
  }
}
