import type { EjectionSettings } from "../../domain/settings.ts";
import { KeyedShare, RecentCount } from "./keyed-share.ts";

/** Limit on keys whose failures are counted separately. */
const mostKeys = 64;

const shareSeconds = 10;

/**
 * Failures in a row eject the target for all keys only if they are this part of the recent
 * attempts.
 */
const recentSeconds = 2;

const recentPart = 1 / 8;

/** Attempts of one key since its first failure, or since it was forgotten. */
interface OwnCount {
  inRow: number;
  readonly attempts: RecentCount;
  readonly failures: RecentCount;
}

/**
 * Counts failures of the attempts at one target and decides whether to eject it, for one key or for
 * all. Failures of only one or two keys never eject it for the others.
 */
export class FailureTally {
  readonly #share = new KeyedShare({ countsFromFailure: true });
  readonly #recent = new RecentCount(recentSeconds);
  /** Failures in a row across all keys, counted by key. */
  readonly #row = new Map<string, number>();
  readonly #own = new Map<string, OwnCount>();

  succeeded(key: string, nowMs: number): void {
    this.#share.succeeded(key, nowMs);
    this.#recent.add(nowMs);
    if (this.#row.size > 0) this.#row.clear();
    const own = this.#own.get(key);
    if (own === undefined) return;
    own.inRow = 0;
    own.attempts.add(nowMs);
  }

  failed(key: string, nowMs: number): void {
    this.#share.failed(key, nowMs);
    this.#recent.add(nowMs);
    const inRow = this.#row.get(key);
    if (inRow !== undefined || this.#row.size < mostKeys) this.#row.set(key, (inRow ?? 0) + 1);
    const own = this.#ownOf(key);
    own.inRow += 1;
    own.attempts.add(nowMs);
    own.failures.add(nowMs);
  }

  /** Reason to eject the target for the key, if there is one. */
  reasonForKey(key: string, nowMs: number, settings: EjectionSettings): string | undefined {
    const own = this.#own.get(key);
    if (own === undefined) return undefined;
    if (own.inRow >= settings.failures) return `${own.inRow} failures in a row`;
    return tooMany(own.attempts.sum(nowMs), own.failures.sum(nowMs), settings);
  }

  /** Reason to eject the target for all keys, if there is one. */
  reasonForAll(nowMs: number, settings: EjectionSettings): string | undefined {
    const needed = Math.max(settings.failures, this.#recent.sum(nowMs) * recentPart);
    const inRow = this.#weightedRow(needed);
    if (inRow >= needed) return `${inRow} failures in a row`;
    const { attempts, failures } = this.#share.withoutWorst(nowMs);
    return tooMany(attempts, failures, settings);
  }

  /** The key starts over; its failures still count as its own in the shared tally. */
  forget(key: string): void {
    this.#row.delete(key);
    this.#own.delete(key);
  }

  clear(): void {
    this.#share.clear();
    this.#row.clear();
    this.#own.clear();
  }

  /** Each key counts for less than half of the failures needed. */
  #weightedRow(needed: number): number {
    if (this.#row.size < 3) return 0;
    const most = Math.max(1, Math.floor(needed / 2));
    let sum = 0;
    for (const count of this.#row.values()) sum += Math.min(count, most);
    return sum;
  }

  #ownOf(key: string): OwnCount {
    const known = this.#own.get(key);
    if (known !== undefined) return known;
    if (this.#own.size >= mostKeys) {
      const [oldest] = this.#own.keys();
      if (oldest !== undefined) this.#own.delete(oldest);
    }
    const own = {
      inRow: 0,
      attempts: new RecentCount(shareSeconds),
      failures: new RecentCount(shareSeconds),
    };
    this.#own.set(key, own);
    return own;
  }
}

function tooMany(
  attempts: number,
  failures: number,
  { leastAttempts, errorPercent }: EjectionSettings,
): string | undefined {
  const isTooMany =
    failures > 0 && attempts >= leastAttempts && failures * 100 >= errorPercent * attempts;
  return isTooMany ? `${failures} of ${attempts} attempts in ten seconds failed` : undefined;
}
