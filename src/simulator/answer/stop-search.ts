/**
 * Finds the stop sequence that is complete first in a text that comes in pieces, as a model does
 * that writes until there is one. Holds back only what may still turn out to be the beginning of
 * one.
 */
export class StopSearch {
  readonly #sequences: readonly string[];
  readonly #longest: number;
  #held: string[] = [];
  #heldLength = 0;
  #found: string | undefined;

  constructor(sequences: readonly string[]) {
    this.#sequences = sequences.filter((sequence) => sequence !== "");
    this.#longest = Math.max(0, ...this.#sequences.map((sequence) => sequence.length));
  }

  /** The stop sequence at which the text has ended; nothing may be pushed after that. */
  get found(): string | undefined {
    return this.#found;
  }

  /** True when there is nothing to search for. */
  get isIdle(): boolean {
    return this.#sequences.length === 0;
  }

  /** The pieces that are now certain to belong to the answer. */
  push(piece: string): string[] {
    this.#held.push(piece);
    this.#heldLength += piece.length;
    const text = this.#held.join("");
    const found = this.#sequences
      .map((sequence) => ({ sequence, place: text.indexOf(sequence) }))
      .filter(({ place }) => place >= 0)
      .sort((first, second) => endOf(first) - endOf(second) || first.place - second.place)[0];
    if (found !== undefined) {
      this.#found = found.sequence;
      return this.#release(found.place);
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

function endOf({ sequence, place }: { readonly sequence: string; readonly place: number }): number {
  return place + sequence.length;
}
