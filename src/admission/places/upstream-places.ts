/**
 * Requests that are under way at an upstream at once, up to a limit that a reload may change. It
 * knows who waits, and keeps no queue of its own.
 */
export class UpstreamPlaces {
  #limit: number;
  #count = 0;
  /** What looks again when a place is free, longest first. */
  readonly #waiting = new Set<() => void>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  get limit(): number {
    return this.#limit;
  }

  set limit(limit: number) {
    this.#limit = limit;
    this.#lookAgain();
  }

  get count(): number {
    return this.#count;
  }

  get free(): number {
    return Math.max(0, this.#limit - this.#count);
  }

  /** False when there is none. Each that was taken must be given back once. */
  tryTake(): boolean {
    if (this.free === 0) return false;
    this.#count += 1;
    return true;
  }

  /** For what was sold, which is not held to the places that others have taken. */
  take(): void {
    this.#count += 1;
  }

  giveBack(): void {
    this.#count -= 1;
    this.#lookAgain();
  }

  /** Runs something once, when there is a place, until it is told to forget it. */
  whenFree(look: () => void): void {
    this.#waiting.add(look);
  }

  forget(look: () => void): void {
    this.#waiting.delete(look);
  }

  #lookAgain(): void {
    // Who finds that it cannot enter yet waits again, behind the others.
    for (let looks = this.#waiting.size; looks > 0 && this.free > 0; looks -= 1) {
      const [look] = this.#waiting;
      if (look === undefined) return;
      this.#waiting.delete(look);
      look();
    }
  }
}
