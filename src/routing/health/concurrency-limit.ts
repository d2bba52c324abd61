import { WaitingGates } from "../../domain/waiting/gate.ts";
import { KeyedShare } from "./keyed-share.ts";

/** The part of the running attempts that remains when they are too many for the target. */
const cutTo = 0.8;
/** The lowest limit: so few attempts overload no usable target. */
const leastLimit = 10;
/** Time for a cut to take effect before the next one. */
const cutPauseMs = 1_000;
/** The limit is cut when more than this percentage of the attempts of ten seconds are overloads. */
const overloadPercent = 10;
/** With fewer attempts, a share is chance. */
const leastAttempts = 20;
/** The limit grows only while at least this part of it is used. */
const growFrom = 0.8;
/** A target without a cut for this long needs no limit. */
const calmMs = 10_000;

/**
 * How many attempts a target takes at once, found by additive increase and multiplicative decrease
 * (Chiu and Jain 1989, as in TCP, RFC 5681). There is no limit until a share of the attempts shows
 * overload; then it is a fifth less than the running attempts. It grows by one with each success up
 * to the previous limit, and beyond it by one for as many successes as the limit allows. While
 * other keys call, the key with most overloads does not count, and no key can take the places of
 * the others.
 */
export class ConcurrencyLimit {
  readonly #share = new KeyedShare({ countsFromFailure: false });
  readonly #inFlightByKey = new Map<string, number>();
  #limit = Number.POSITIVE_INFINITY;
  /** Up to this value it grows fast. */
  #threshold = 0;
  #inFlight = 0;
  #cutAtMs = Number.NEGATIVE_INFINITY;
  /** Served when the limit grows or ends; they serve themselves when places are given back. */
  readonly waiting = new WaitingGates();

  get inFlight(): number {
    return this.#inFlight;
  }

  /** At least 10; not a whole number while it grows. */
  limitAt(nowMs: number): number {
    if (this.#limit !== Number.POSITIVE_INFINITY && nowMs - this.#cutAtMs >= calmMs) {
      this.#limit = Number.POSITIVE_INFINITY;
      this.waiting.serve();
    }
    return this.#limit;
  }

  /** At the limit, each key that uses or requests places still has its equal part of it. */
  hasRoom(key: string, nowMs: number): boolean {
    const limit = this.limitAt(nowMs);
    if (this.#inFlight + 1 <= limit) return true;
    this.#share.seen(key, nowMs);
    const own = this.#inFlightByKey.get(key) ?? 0;
    const keys = this.#inFlightByKey.size + (own === 0 ? 1 : 0);
    return keys > 1 && own + 1 <= Math.max(1, limit / keys);
  }

  /** Each place taken, even one above the limit, must be given back once. */
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
    if (Math.floor(this.#limit) > Math.floor(limit)) this.waiting.serve();
  }

  /** An attempt that is still counted showed that the target is overloaded. */
  overloaded(key: string, nowMs: number): void {
    this.#share.failed(key, nowMs);
    if (nowMs - this.#cutAtMs < cutPauseMs || !this.#isOverloaded(nowMs)) return;
    this.#cutAtMs = nowMs;
    this.#threshold = Math.min(this.#limit, this.#inFlight);
    this.#limit = Math.max(leastLimit, Math.floor(this.#inFlight * cutTo));
  }

  #isOverloaded(nowMs: number): boolean {
    const hasOthers = this.#inFlightByKey.size > 1;
    const { attempts, failures } = hasOthers
      ? this.#share.withoutWorst(nowMs)
      : this.#share.fair(nowMs);
    return attempts >= leastAttempts && failures * 100 > overloadPercent * attempts;
  }
}
