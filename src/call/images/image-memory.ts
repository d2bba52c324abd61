/** A part of the memory, held until it is released. */
export interface ImageShare {
  /** Gives back what was not needed. */
  shrinkTo(bytes: number): void;
  /** Once; later ones change nothing. */
  release(): void;
}

/** Most bytes of images that all calls hold at once; requests made of them take some times more. */
export const imageMemoryBytes = 128 * 1024 * 1024;

/** Shares a number of bytes between calls, in the order in which they ask. */
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
   * Waits until there is room; undefined when the time is over or the signal has fired. Who holds a
   * share must not wait for another. What is larger than the limit gets all there is.
   */
  take(bytes: number, signal: AbortSignal, patienceMs: number): Promise<ImageShare | undefined> {
    if (signal.aborted) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const end = (share: ImageShare | undefined): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", giveUp);
        this.#waiting.delete(waiting);
        resolve(share);
        this.#letIn();
      };
      const giveUp = (): void => end(undefined);
      const waiting = { bytes: Math.min(bytes, this.#limitBytes), letIn: end };
      const timer = setTimeout(giveUp, patienceMs);
      signal.addEventListener("abort", giveUp, { once: true });
      this.#waiting.add(waiting);
      this.#letIn();
    });
  }

  /** The first in the row; each that ends its wait looks after the next. */
  #letIn(): void {
    const [first] = this.#waiting;
    if (first === undefined || this.#heldBytes + first.bytes > this.#limitBytes) return;
    first.letIn(this.#share(first.bytes));
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
      this.#letIn();
    };
    return { shrinkTo: giveBack, release: () => giveBack(0) };
  }
}

interface Waiting {
  readonly bytes: number;
  readonly letIn: (share: ImageShare) => void;
}
