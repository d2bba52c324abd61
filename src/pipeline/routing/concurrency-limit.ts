/** What stays of the attempts under way when the target shows that they are too many. */
const cutTo = 0.8;
/** So few attempts at once are too much for nothing that is worth asking. */
const leastLimit = 10;
/** Failures of one moment are one sign. */
const cutPauseMs = 1_000;
/** The limit grows only where it is nearly used. */
const growFrom = 0.8;
/** A target without trouble for so long needs no limit. */
const calmMs = 60_000;

/**
 * How many attempts a target takes at once, found by trying: no limit until it shows trouble, then
 * a fifth less than what was under way, and one more each time that as many attempts as the limit
 * allows have gone well.
 */
export class ConcurrencyLimit {
  #limit = Number.POSITIVE_INFINITY;
  #inFlight = 0;
  #cutAtMs = Number.NEGATIVE_INFINITY;
  #troubleAtMs = Number.NEGATIVE_INFINITY;

  get inFlight(): number {
    return this.#inFlight;
  }

  /** At least 10; not a whole number while it grows. */
  limitAt(nowMs: number): number {
    if (nowMs - this.#troubleAtMs >= calmMs) this.#limit = Number.POSITIVE_INFINITY;
    return this.#limit;
  }

  /** Takes a place; false when there is none. Whoever took one must leave it once. */
  tryEnter(nowMs: number): boolean {
    if (this.#inFlight + 1 > this.limitAt(nowMs)) return false;
    this.#inFlight += 1;
    return true;
  }

  /** Takes a place though there may be none. */
  enterAnyway(): void {
    this.#inFlight += 1;
  }

  leave(): void {
    this.#inFlight -= 1;
  }

  /** An attempt that is still counted showed that the target has too much to do. */
  trouble(nowMs: number): void {
    this.#troubleAtMs = nowMs;
    if (nowMs - this.#cutAtMs < cutPauseMs) return;
    this.#cutAtMs = nowMs;
    this.#limit = Math.max(leastLimit, Math.floor(this.#inFlight * cutTo));
  }

  /** An attempt that is still counted went well. */
  success(nowMs: number): void {
    const limit = this.limitAt(nowMs);
    if (this.#inFlight >= limit * growFrom) this.#limit = limit + 1 / limit;
  }
}
