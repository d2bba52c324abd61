/**
 * Finds the first complete stop sequence in a text that arrives in pieces, as a model does while it
 * writes. Holds back only what may be the beginning of one.
 */
export class StopSearch {
  readonly #sequences: readonly string[];
  readonly #longest: number;
  #held: string[] = [];
  #found: string | undefined;

  constructor(sequences: readonly string[]) {
    this.#sequences = sequences.filter((sequence) => sequence !== "");
    this.#longest = Math.max(0, ...this.#sequences.map((sequence) => sequence.length));
  }

  /** The stop sequence that ended the text; nothing may be pushed after it. */
  get found(): string | undefined {
    return this.#found;
  }

  /** Returns the pieces that certainly belong to the answer. */
  push(piece: string): string[] {
    this.#held.push(piece);
    const text = this.#held.join("");
    const [found] = this.#sequences
      .map((sequence) => ({ sequence, place: text.indexOf(sequence) }))
      .filter(({ place }) => place >= 0)
      .map((hit) => ({ ...hit, end: hit.place + hit.sequence.length }))
      .sort((one, other) => one.end - other.end || one.place - other.place);
    this.#found = found?.sequence;
    if (found !== undefined) return this.#upTo(found.place);
    let certain = 0;
    let count = 0;
    for (const { length } of this.#held) {
      if (text.length - certain - length < this.#longest - 1) break;
      certain += length;
      count += 1;
    }
    return this.#held.splice(0, count);
  }

  /** The pieces that are still held back when the text ends without a stop sequence. */
  rest(): string[] {
    return this.#held.splice(0);
  }

  #upTo(length: number): string[] {
    const pieces: string[] = [];
    let room = length;
    for (const piece of this.#held.splice(0)) {
      if (room > 0) pieces.push(piece.slice(0, room));
      room -= piece.length;
    }
    return pieces;
  }
}
