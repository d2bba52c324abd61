import { SlidingSum } from "../../domain/limits/sliding-sum.ts";
import { slotAt } from "../../domain/limits/slots.ts";

/** Seconds whose attempts make up a share. */
const shareSeconds = 10;
/** Keys, or accounts, that are told apart; beyond it, the one that came first is forgotten. */
const mostKeys = 64;

export interface Share {
  readonly attempts: number;
  readonly failures: number;
}

/** Attempts and failures of one key, since its first failure. */
export interface KeyCount {
  readonly attempts: RecentCount;
  readonly failures: RecentCount;
}

/** Attempts of the last ten seconds, and which of them failed, by key. */
export class KeyedShare {
  readonly #countsFromFailure: boolean;
  readonly #attempts = new RecentCount(shareSeconds);
  readonly #failures = new RecentCount(shareSeconds);
  readonly #keys = new Map<string, KeyCount>();
  #lastKey: string | undefined;
  /** When a key other than the previous one was last seen. */
  #changedAtMs = Number.NEGATIVE_INFINITY;

  /**
   * `countsFromFailure`: attempts count only from the first failure of the ten seconds on, so that
   * those from before it do not hide a problem that has just begun.
   */
  constructor({ countsFromFailure }: { readonly countsFromFailure: boolean }) {
    this.#countsFromFailure = countsFromFailure;
  }

  /** The key uses the target, whatever the outcome. */
  seen(key: string, nowMs: number): void {
    if (key === this.#lastKey) return;
    if (this.#lastKey !== undefined) this.#changedAtMs = nowMs;
    this.#lastKey = key;
  }

  succeeded(key: string, nowMs: number): void {
    this.seen(key, nowMs);
    this.#attempts.add(nowMs);
    this.#keys.get(key)?.attempts.add(nowMs);
  }

  failed(key: string, nowMs: number): void {
    this.seen(key, nowMs);
    if (this.#countsFromFailure && this.#failures.sum(nowMs) === 0) this.clear();
    this.#attempts.add(nowMs);
    this.#failures.add(nowMs);
    const count = this.#keys.get(key) ?? keepIn(this.#keys, key, newKeyCount());
    count.attempts.add(nowMs);
    count.failures.add(nowMs);
  }

  all(nowMs: number): Share {
    return { attempts: this.#attempts.sum(nowMs), failures: this.#failures.sum(nowMs) };
  }

  /** Without the key that failed most: no key can make this look bad for the others. */
  withoutWorst(nowMs: number): Share {
    const { attempts, failures } = this.all(nowMs);
    if (failures === 0) return { attempts, failures };
    let worst: Share = { attempts: 0, failures: 0 };
    for (const count of this.#keys.values()) {
      const share = shareOf(count, nowMs);
      if (share.failures > worst.failures) worst = share;
    }
    return { attempts: attempts - worst.attempts, failures: failures - worst.failures };
  }

  /** `withoutWorst`, unless one key made all attempts of the ten seconds. */
  fair(nowMs: number): Share {
    const isOfOneKey = nowMs - this.#changedAtMs >= shareSeconds * 1_000;
    return isOfOneKey ? this.all(nowMs) : this.withoutWorst(nowMs);
  }

  clear(): void {
    this.#attempts.clear();
    this.#failures.clear();
    this.#keys.clear();
  }
}

/** Adds a value to a map of bounded size. */
export function keepIn<Value>(values: Map<string, Value>, key: string, value: Value): Value {
  if (values.size >= mostKeys && !values.has(key)) {
    const [oldest] = values.keys();
    if (oldest !== undefined) values.delete(oldest);
  }
  values.set(key, value);
  return value;
}

export function newKeyCount(): KeyCount {
  return { attempts: new RecentCount(shareSeconds), failures: new RecentCount(shareSeconds) };
}

export function shareOf(count: KeyCount, nowMs: number): Share {
  return { attempts: count.attempts.sum(nowMs), failures: count.failures.sum(nowMs) };
}

/** Counts events of the last seconds, including the current one. */
export class RecentCount {
  readonly #seconds: SlidingSum;

  constructor(seconds: number) {
    this.#seconds = new SlidingSum(seconds);
  }

  add(nowMs: number): void {
    this.#seconds.addAt(slotAt(nowMs), 1);
  }

  sum(nowMs: number): number {
    return this.#seconds.sumAt(slotAt(nowMs));
  }

  clear(): void {
    this.#seconds.clear();
  }
}
