import type { Clock } from "../../domain/clock.ts";

/** Bytes of complete server-sent events; `undefined` ends the stream. */
export interface FrameSource {
  /** Rejects never: a failure becomes an error frame before it gets here. */
  next(): Promise<string | undefined>;
  /** The reader is gone or too slow: stop producing. Safe to call at any time, more than once. */
  cancel(): void;
}

export interface EventStreamOptions {
  readonly clock: Clock;
  /** Silence after which `keepAlive` is sent; 0 never. */
  readonly keepAliveMs: number;
  /** `keepAliveComment`, or an empty chunk for clients that choke on comments. */
  readonly keepAlive: string;
  /** Sends one before anything else: the runtime holds the headers back until there is a body. */
  readonly beginsWithKeepAlive: boolean;
  /** How long a reader may leave a written event unread before it is cut off. */
  readonly writeTimeoutMs: number;
  /** Told when the last event was handed over, or the reader was cut off; not when it left. */
  readonly onEnd: (end: StreamEnd) => void;
}

/** How a streamed body ended: with its last byte, or before it. */
export type StreamEnd = "whole" | "cut";

export const eventStreamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
} as const;

/**
 * A block of its own, empty line included: parsers that split a stream on empty lines and look at
 * how a block begins would otherwise take the comment and the event behind it for one block.
 */
export const keepAliveComment = ": keep-alive\n\n";

/**
 * A response body that pulls one batch of events at a time, so that a slow reader holds back the
 * source instead of filling memory.
 */
export function eventStream(
  source: FrameSource,
  options: EventStreamOptions,
): ReadableStream<Uint8Array> {
  const writer = new EventStreamWriter(source, options);
  return new ReadableStream<Uint8Array>(
    {
      pull: (controller) => writer.pull(controller),
      cancel: () => writer.close(),
    },
    { highWaterMark: 0 },
  );
}

const encoder = new TextEncoder();

class EventStreamWriter {
  readonly #source: FrameSource;
  readonly #options: EventStreamOptions;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #lastWriteAt: number;
  /** True while the reader waits for us, false while we wait for the reader. */
  #isPulling = false;
  #isClosed = false;
  #hasGreeting: boolean;

  constructor(source: FrameSource, options: EventStreamOptions) {
    this.#source = source;
    this.#options = options;
    this.#hasGreeting = options.beginsWithKeepAlive;
    this.#lastWriteAt = options.clock.monotonic();
    this.#arm();
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#controller = controller;
    if (this.#hasGreeting) {
      this.#hasGreeting = false;
      return this.#write(this.#options.keepAlive);
    }
    this.#isPulling = true;
    const frames = await this.#source.next();
    this.#isPulling = false;
    if (this.#isClosed) return;
    if (frames === undefined) {
      this.close();
      this.#options.onEnd("whole");
      controller.close();
      return;
    }
    this.#write(frames);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#source.cancel();
  }

  /** One timer a stream, not one an event: it looks how long the silence was, and sleeps again. */
  #arm(): void {
    const { keepAliveMs, writeTimeoutMs } = this.#options;
    const soonestMs = keepAliveMs > 0 ? Math.min(keepAliveMs, writeTimeoutMs) : writeTimeoutMs;
    const delayMs = Math.min(soonestMs, Math.max(1, this.#silenceLimitMs() - this.#silenceMs()));
    this.#timer = setTimeout(() => this.#onTimer(), delayMs);
  }

  #silenceMs(): number {
    return this.#options.clock.monotonic() - this.#lastWriteAt;
  }

  /** How long nothing may be written: by us while the reader waits, else because it does not read. */
  #silenceLimitMs(): number {
    const { keepAliveMs, writeTimeoutMs } = this.#options;
    return this.#isPulling && keepAliveMs > 0 ? keepAliveMs : writeTimeoutMs;
  }

  #onTimer(): void {
    // Timers may fire a fraction of a millisecond early.
    const isDue = this.#silenceMs() + 1 >= this.#silenceLimitMs();
    if (isDue && !this.#isPulling) return this.#cutOff();
    if (isDue && this.#options.keepAliveMs > 0) this.#write(this.#options.keepAlive);
    this.#arm();
  }

  #write(frames: string): void {
    this.#lastWriteAt = this.#options.clock.monotonic();
    this.#controller?.enqueue(encoder.encode(frames));
  }

  #cutOff(): void {
    this.close();
    this.#options.onEnd("cut");
    this.#controller?.error(new Error("the reader left a written event unread for too long"));
  }
}
