import type { StreamEnd } from "../replies/event-stream.ts";

export interface WatchOptions {
  /** How long a reader may leave a written chunk unread. */
  readonly unreadTimeoutMs: number;
  /**
   * Called once: after the last chunk, when the reader is cut off or leaves, or when the source
   * fails.
   */
  readonly onEnd: (end: StreamEnd) => void;
}

/** Passes a body on with back-pressure, cuts off readers that stall, and reports the end. */
export function watchedBody(
  body: ReadableStream<Uint8Array>,
  { unreadTimeoutMs, onEnd }: WatchOptions,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  const end = (how: StreamEnd): void => {
    clearTimeout(timer);
    if (isOver) return;
    isOver = true;
    onEnd(how);
  };
  const cutOff = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
    end("cut");
    const error = new Error("the reader did not read for too long");
    controller.error(error);
    reader.cancel(error).catch(() => undefined);
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        clearTimeout(timer);
        const { done, value } = await reader.read().catch((error: unknown) => {
          end("cut");
          throw error;
        });
        if (isOver) return;
        if (done) {
          end("whole");
          controller.close();
          return;
        }
        controller.enqueue(value);
        timer = setTimeout(() => cutOff(controller), unreadTimeoutMs);
      },
      async cancel(reason) {
        end("cut");
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}
