/** As long as use counts in a minute. */
const recentMs = 61_000;
const mostSecrets = 10_000;

/** The secrets that calls of this process used in the last minute, by public id. */
export class RecentSecrets {
  readonly #uses = new Map<string, number>();

  /** Times in milliseconds since the epoch. */
  note(uses: ReadonlyMap<string, number>): void {
    for (const [publicId, at] of uses) {
      this.#uses.delete(publicId);
      this.#uses.set(publicId, at);
    }
    for (const publicId of this.#uses.keys()) {
      if (this.#uses.size <= mostSecrets) break;
      this.#uses.delete(publicId);
    }
  }

  /** The latest first. */
  since(now: number): readonly string[] {
    for (const [publicId, at] of this.#uses) {
      if (at >= now - recentMs) break;
      this.#uses.delete(publicId);
    }
    return [...this.#uses.keys()].toReversed();
  }
}
