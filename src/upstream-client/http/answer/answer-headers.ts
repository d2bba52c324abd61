import { hasTextAt } from "./characters.ts";

/**
 * The headers of an answer. Kept as the text of its head and the places of names and values in it:
 * a call reads two or three of them.
 */
export class AnswerHeaderFields {
  readonly #head: string;
  /** For each field: start and end of its name, start and end of its value. */
  readonly #places: readonly number[];

  constructor(head: string, places: readonly number[]) {
    this.#head = head;
    this.#places = places;
  }

  /** The value, joined by commas if there are several; null without one. `name`: lower case. */
  get(name: string): string | null {
    const head = this.#head;
    const places = this.#places;
    let found: string | null = null;
    for (let index = 0; index < places.length; index += 4) {
      const start = places[index] ?? 0;
      const length = (places[index + 1] ?? 0) - start;
      if (length !== name.length || !hasTextAt(head, start, name)) continue;
      const value = head.slice(places[index + 2], places[index + 3]);
      found = found === null ? value : `${found}, ${value}`;
    }
    return found;
  }
}
