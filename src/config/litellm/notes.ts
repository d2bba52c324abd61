/** Sentences for the operator, each with the places that it is about. */
export class Notes {
  readonly #places = new Map<string, Set<string>>();

  /** `sentence` has no full stop. */
  add(sentence: string, place?: string): void {
    const places = this.#places.get(sentence) ?? new Set();
    this.#places.set(sentence, places);
    if (place !== undefined) places.add(place);
  }

  sentences(): readonly string[] {
    return [...this.#places].map(([sentence, places]) => {
      return places.size === 0 ? `${sentence}.` : `${sentence}: ${[...places].join(", ")}.`;
    });
  }
}
