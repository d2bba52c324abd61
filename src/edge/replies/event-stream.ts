import type { Clock } from "../../domain/clock.ts";

/** Bytes of complete server-sent events; `undefined` ends the stream. */
export interface FrameSource {
  /** Never rejects: a failure arrives as an error frame. */
  next(): Promise<string | undefined>;
  /** Stops producing. May be called at any time, more than once. */
  cancel(): void;
}

export interface EventStreamOptions {
  readonly clock: Clock;
  /** Silence after which `keepAlive` is sent; 0 for never. */
  readonly keepAliveMs: number;
  /** `keepAliveComment`, or an empty chunk for clients that cannot parse comments. */
  readonly keepAlive: string;
  /** Sends a keep-alive first: the runtime holds the headers back until there is a body. */
  readonly beginsWithKeepAlive: boolean;
  /** How long a reader may leave a written event unread before it is cut off. */
  readonly writeTimeoutMs: number;
  /** Called after the last event or when the reader is cut off; not when the reader leaves. */
  readonly onEnd: (end: StreamEnd) => void;
}

/** Whether a streamed body ended with its last byte or before it. */
export type StreamEnd = "whole" | "cut";

export const eventStreamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
} as const;

/**
 * A separate block with its empty line: parsers that split at empty lines would otherwise read the
 * comment and the next event as one block.
 */
export const keepAliveComment = ": keep-alive\n\n";

/**
 * A response body that pulls one batch of events at a time: back-pressure of a slow reader reaches
 * the source.
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
  /** True while the reader waits for the source, false while the reader has to read. */
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

  /** Longest silence: until a keep-alive while the reader waits, else until the reader is cut off. */
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
