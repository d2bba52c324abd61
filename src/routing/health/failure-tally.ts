import type { OutSettings } from "../../domain/settings.ts";
import {
  keepIn,
  type KeyCount,
  KeyedShare,
  newKeyCount,
  RecentCount,
  type Share,
  shareOf,
} from "./keyed-share.ts";

/** Whose attempt it was. */
export interface KeyOf {
  readonly key: string;
  readonly account: string;
}

/**
 * Failures in a row take the target out for all keys only if they are this part of the recent
 * attempts.
 */
const recentSeconds = 2;

const recentPart = 1 / 8;

/**
 * Counts failures of the attempts at one target and decides whether it is out, for one key or for
 * all. Failures of one account never take it out for the others.
 */
export class FailureTally {
  /** By account, as the row. */
  readonly #share = new KeyedShare({ countsFromFailure: true });
  readonly #recent = new RecentCount(recentSeconds);
  /** Failures since the last success of any account, by account. */
  readonly #row = new Map<string, number>();
  /** Each key that failed, with its failures since its own last success. */
  readonly #own = new Map<string, KeyCount & { inRow: number }>();

  succeeded({ key, account }: KeyOf, nowMs: number): void {
    this.#share.succeeded(account, nowMs);
    this.#recent.add(nowMs);
    if (this.#row.size > 0) this.#row.clear();
    const own = this.#own.get(key);
    if (own === undefined) return;
    own.inRow = 0;
    own.attempts.add(nowMs);
  }

  failed({ key, account }: KeyOf, nowMs: number): void {
    this.#share.failed(account, nowMs);
    this.#recent.add(nowMs);
    const inRow = this.#row.get(account) ?? 0;
    keepIn(this.#row, account, inRow + 1);
    const own = this.#own.get(key) ?? { ...newKeyCount(), inRow: 0 };
    own.inRow += 1;
    if (own.failures.sum(nowMs) === 0) own.attempts.clear();
    own.attempts.add(nowMs);
    own.failures.add(nowMs);
    keepIn(this.#own, key, own);
  }

  reasonForKey(key: string, nowMs: number, settings: OutSettings): string | undefined {
    const own = this.#own.get(key);
    if (own === undefined) return undefined;
    if (own.inRow >= settings.failures) return `${own.inRow} failures in a row`;
    return tooMany(shareOf(own, nowMs), settings);
  }

  reasonForAll(nowMs: number, settings: OutSettings): string | undefined {
    const needed = Math.max(settings.failures, this.#recent.sum(nowMs) * recentPart);
    const inRow = this.#weightedRow(needed);
    if (inRow >= needed) return `${inRow} failures in a row`;
    return tooMany(this.#share.withoutWorst(nowMs), settings);
  }

  /** The key is out, and starts anew; the share of its account still counts as its own. */
  forget({ key, account }: KeyOf): void {
    this.#row.delete(account);
    this.#own.delete(key);
  }

  clear(): void {
    this.#share.clear();
    this.#row.clear();
    this.#own.clear();
  }

  /** Each account counts for less than half of the failures needed. */
  #weightedRow(needed: number): number {
    if (this.#row.size < 3) return 0;
    const most = Math.max(1, Math.floor(needed / 2));
    let sum = 0;
    for (const count of this.#row.values()) sum += Math.min(count, most);
    return sum;
  }
}

function tooMany(
  { attempts, failures }: Share,
  { leastAttempts, errorPercent }: OutSettings,
): string | undefined {
  const isTooMany =
    failures > 0 && attempts >= leastAttempts && failures * 100 >= errorPercent * attempts;
  return isTooMany ? `${failures} of ${attempts} attempts in ten seconds failed` : undefined;
}
