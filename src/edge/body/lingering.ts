import { releaseBytes } from "../../domain/chat/bytes.ts";

export interface LingeringLimits {
  /** Of a body that is served. */
  readonly bodyLimitBytes: number;
  readonly bodyTimeoutMs: number;
}

/** Bodies up to this many times the limit, or this size, are discarded before they are refused. */
const discardFactor = 4;
const leastDiscardedBytes = 32 * 1024 * 1024;
/** A caller that pauses for so many ticks waits for its answer, or is slow for other reasons. */
const silentTicks = 4;
const tickMs = 500;
/** How many bodies are discarded at once; further ones are refused with their rest unread. */
const mostAtOnce = 256;

/**
 * Reads what a caller still sends of a refused body before its connection is closed. A client that
 * writes to a closed connection sees only that, not the answer: the kernel resets a connection that
 * is closed with unread data.
 */
export class Lingering {
  #atOnce = 0;

  /** Resolves at the end of the body, or at a limit. Undefined: there is nothing to wait for. */
  discardRest(request: Request, limits: LingeringLimits): Promise<void> | undefined {
    const declared = Number(request.headers.get("content-length") ?? 0);
    const mostBytes = Math.max(discardFactor * limits.bodyLimitBytes, leastDiscardedBytes);
    if (declared > mostBytes || this.#atOnce >= mostAtOnce) return undefined;
    const { body } = request;
    // A locked one was read as a whole.
    if (body === null || body.locked) return undefined;
    this.#atOnce += 1;
    return discard(body, mostBytes, limits.bodyTimeoutMs).finally(() => {
      this.#atOnce -= 1;
    });
  }
}

function discard(
  body: ReadableStream<Uint8Array>,
  mostBytes: number,
  timeoutMs: number,
): Promise<void> {
  const reader = body.getReader();
  return new Promise((resolve) => {
    let size = 0;
    let seen = 0;
    let silent = 0;
    const until = performance.now() + timeoutMs;
    let isOver = false;
    const end = (): void => {
      isOver = true;
      clearInterval(ticks);
      resolve();
    };
    // Ticks and not one timer: a late loop fires it before it reads what has arrived meanwhile.
    const ticks = setInterval(() => {
      silent = size === seen ? silent + 1 : 0;
      seen = size;
      if (silent === silentTicks || performance.now() >= until) end();
    }, tickMs);
    const readOn = (): void => {
      reader.read().then(({ value }) => {
        if (isOver) return;
        size += value?.byteLength ?? 0;
        if (value === undefined || size > mostBytes) return end();
        releaseBytes(value);
        readOn();
      }, end);
    };
    readOn();
  });
}
