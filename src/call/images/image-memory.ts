import type { EndSignal } from "../../domain/waiting/end-signal.ts";
/** A share of the memory, held until it is released. */
export interface ImageShare {
  /** Returns the part that was not needed. */
  shrinkTo(bytes: number): void;
  /** Idempotent. */
  release(): void;
}

/** Limit on image bytes of all calls together; their requests take several times more. */
export const imageMemoryBytes = 128 * 1024 * 1024;

/** Shares a number of bytes between calls, first come, first served. */
export class ImageMemory {
  readonly #limitBytes: number;
  readonly #waiting = new Set<Waiting>();
  #heldBytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /**
   * Waits for room; undefined on timeout or abort. A holder of a share must not wait for another. A
   * request above the limit gets all of it.
   */
  take(bytes: number, signal: EndSignal, timeoutMs: number): Promise<ImageShare | undefined> {
    if (signal.aborted) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const end = (share: ImageShare | undefined): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", giveUp);
        this.#waiting.delete(waiting);
        resolve(share);
        this.#grantNext();
      };
      const giveUp = (): void => end(undefined);
      const waiting = { bytes: Math.min(bytes, this.#limitBytes), grant: end };
      const timer = setTimeout(giveUp, timeoutMs);
      signal.addEventListener("abort", giveUp, { once: true });
      this.#waiting.add(waiting);
      this.#grantNext();
    });
  }

  /** Grants the first waiting share, which then calls this for the next. */
  #grantNext(): void {
    const [first] = this.#waiting;
    if (first === undefined || this.#heldBytes + first.bytes > this.#limitBytes) return;
    first.grant(this.#share(first.bytes));
  }

  #share(bytes: number): ImageShare {
    let heldBytes = 0;
    const hold = (wantedBytes: number): void => {
      this.#heldBytes += wantedBytes - heldBytes;
      heldBytes = wantedBytes;
    };
    hold(bytes);
    const giveBack = (keptBytes: number): void => {
      if (keptBytes >= heldBytes) return;
      hold(keptBytes);
      this.#grantNext();
    };
    return { shrinkTo: giveBack, release: () => giveBack(0) };
  }
}

interface Waiting {
  readonly bytes: number;
  readonly grant: (share: ImageShare) => void;
}
