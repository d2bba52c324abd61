/**
 * Finds the first stop sequence in a text that comes in pieces. Holds back only what may still
 * turn out to be the beginning of one.
 */
export class StopSearch {
  readonly #sequences: readonly string[];
  readonly #longest: number;
  #held: string[] = [];
  #heldLength = 0;
  #isFound = false;

  constructor(sequences: readonly string[]) {
    this.#sequences = sequences.filter((sequence) => sequence !== "");
    this.#longest = Math.max(0, ...this.#sequences.map((sequence) => sequence.length));
  }

  /** True once the text has ended at a stop sequence; nothing may be pushed after that. */
  get isFound(): boolean {
    return this.#isFound;
  }

  /** The pieces that are now certain to belong to the answer. */
  push(piece: string): string[] {
    this.#held.push(piece);
    this.#heldLength += piece.length;
    const text = this.#held.join("");
    const places = this.#sequences.map((sequence) => text.indexOf(sequence));
    const found = places.filter((place) => place >= 0);
    if (found.length > 0) {
      this.#isFound = true;
      return this.#release(Math.min(...found));
    }
    const released: string[] = [];
    for (let first = this.#held[0]; first !== undefined; first = this.#held[0]) {
      if (this.#heldLength - first.length < this.#longest - 1) break;
      released.push(first);
      this.#held.shift();
      this.#heldLength -= first.length;
    }
    return released;
  }

  /** What was held back when the text ended without a stop sequence. */
  rest(): string[] {
    return this.#release(this.#heldLength);
  }

  /** The held pieces up to a place in their joined text. */
  #release(length: number): string[] {
    const pieces: string[] = [];
    let room = length;
    for (const piece of this.#held) {
      if (room <= 0) break;
      pieces.push(piece.slice(0, room));
      room -= piece.length;
    }
    this.#held = [];
    this.#heldLength = 0;
    return pieces;
  }
}
