/** Bytes of running streamed answers held for callers that join, for all calls together. */
export class AnswerMemory {
  readonly #limitBytes: () => number;
  #heldBytes = 0;

  constructor(limitBytes: () => number) {
    this.#limitBytes = limitBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** False when there is no room. */
  tryTake(bytes: number): boolean {
    if (this.#heldBytes + bytes > this.#limitBytes()) return false;
    this.#heldBytes += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#heldBytes -= bytes;
  }
}
