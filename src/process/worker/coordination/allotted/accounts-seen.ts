/** Most accounts that are told apart. */
const mostAccounts = 10_000;

/** The accounts that asked for places in the last beats. */
export class AccountsSeen {
  #current = new Set<string>();
  #previous: ReadonlySet<string> = new Set<string>();

  seen(accountId: string): void {
    if (this.#current.size < mostAccounts) this.#current.add(accountId);
  }

  /** Together with those that wait; at least one. */
  count(waiting: Iterable<string> = []): number {
    const all = new Set([...this.#current, ...this.#previous, ...waiting]);
    return Math.max(1, all.size);
  }

  /** Forgets those that have not asked since the last call of this. */
  beat(): void {
    this.#previous = this.#current;
    this.#current = new Set();
  }
}
