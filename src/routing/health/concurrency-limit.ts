import { KeyedShare } from "./keyed-share.ts";

/** What stays of the attempts under way when the target shows that they are too many. */
const cutTo = 0.8;
/** So few attempts at once are too much for nothing that is worth asking. */
const leastLimit = 10;
/** A cut shows its effect before the next one. */
const cutPauseMs = 1_000;
/** The share of overloads, in percent of the attempts of ten seconds, above which it is cut. */
const overloadPercent = 10;
/** Below this number of attempts a share is chance. */
const leastAttempts = 20;
/** The limit grows only where it is nearly used. */
const growFrom = 0.8;
/** A target without a cut for so long needs no limit. */
const calmMs = 10_000;

/**
 * How many attempts a target takes at once, found by additive increase and multiplicative decrease
 * (Chiu and Jain 1989, as in TCP, RFC 5681): no limit until a share of the attempts shows overload,
 * then a fifth less than what was under way. It grows by one with each success up to the limit
 * before, and beyond it by one for as many successes as it allows. The key that meets the most
 * overloads does not count while others call, and no key can fill the places of the others.
 */
export class ConcurrencyLimit {
  readonly #share = new KeyedShare({ countsFromFailure: false });
  readonly #inFlightByKey = new Map<string, number>();
  #limit = Number.POSITIVE_INFINITY;
  /** Up to here it grows fast. */
  #threshold = 0;
  #inFlight = 0;
  #cutAtMs = Number.NEGATIVE_INFINITY;
  /** Called when there is more room than before. */
  readonly #waiting = new Set<() => void>();

  get inFlight(): number {
    return this.#inFlight;
  }

  /** At least 10; not a whole number while it grows. */
  limitAt(nowMs: number): number {
    if (this.#limit !== Number.POSITIVE_INFINITY && nowMs - this.#cutAtMs >= calmMs) {
      this.#limit = Number.POSITIVE_INFINITY;
      this.#lookAgain();
    }
    return this.#limit;
  }

  /** At the limit, each key that is there, or comes, still has its equal part of it. */
  hasRoom(key: string, nowMs: number): boolean {
    const limit = this.limitAt(nowMs);
    if (this.#inFlight + 1 <= limit) return true;
    this.#share.seen(key, nowMs);
    const own = this.#inFlightByKey.get(key) ?? 0;
    const keys = this.#inFlightByKey.size + (own === 0 ? 1 : 0);
    return keys > 1 && own + 1 <= Math.max(1, limit / keys);
  }

  /** Each place that is taken, also one above the limit, must be given back once. */
  take(key: string): void {
    this.#inFlight += 1;
    this.#inFlightByKey.set(key, (this.#inFlightByKey.get(key) ?? 0) + 1);
  }

  giveBack(key: string): void {
    this.#inFlight -= 1;
    const left = (this.#inFlightByKey.get(key) ?? 1) - 1;
    if (left === 0) this.#inFlightByKey.delete(key);
    else this.#inFlightByKey.set(key, left);
  }

  /** The target began to answer an attempt that is still counted. */
  succeeded(key: string, nowMs: number): void {
    this.#share.succeeded(key, nowMs);
    const limit = this.limitAt(nowMs);
    if (limit === Number.POSITIVE_INFINITY || this.#inFlight < limit * growFrom) return;
    this.#limit = limit + (limit < this.#threshold ? 1 : 1 / limit);
    if (Math.floor(this.#limit) > Math.floor(limit)) this.#lookAgain();
  }

  /** An attempt that is still counted showed that the target has too much to do. */
  overloaded(key: string, nowMs: number): void {
    this.#share.failed(key, nowMs);
    if (nowMs - this.#cutAtMs < cutPauseMs || !this.#isOverloaded(nowMs)) return;
    this.#cutAtMs = nowMs;
    this.#threshold = Math.min(this.#limit, this.#inFlight);
    this.#limit = Math.max(leastLimit, Math.floor(this.#inFlight * cutTo));
  }

  /** Calls `look` once when the limit grows or ends. The gate itself gives back places. */
  whenFree(look: () => void): void {
    this.#waiting.add(look);
  }

  #lookAgain(): void {
    const looks = [...this.#waiting];
    this.#waiting.clear();
    for (const look of looks) look();
  }

  #isOverloaded(nowMs: number): boolean {
    const hasOthers = this.#inFlightByKey.size > 1;
    const { attempts, failures } = hasOthers
      ? this.#share.withoutWorst(nowMs)
      : this.#share.fair(nowMs);
    return attempts >= leastAttempts && failures * 100 > overloadPercent * attempts;
  }
}
