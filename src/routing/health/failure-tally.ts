import type { EjectionSettings } from "../../domain/settings.ts";
import { KeyedShare, RecentCount, type Share } from "./keyed-share.ts";

/** Limit on keys whose failures in a row are counted. */
const mostKeys = 64;

/**
 * Failures in a row take the target out for all keys only if they are this part of the recent
 * attempts.
 */
const recentSeconds = 2;

const recentPart = 1 / 8;

/**
 * Counts failures of the attempts at one target and decides whether it is out, for one key or for
 * all. Failures of only one or two keys never take it out for the others.
 */
export class FailureTally {
  readonly #share = new KeyedShare({ countsFromFailure: true });
  readonly #recent = new RecentCount(recentSeconds);
  /** Failures since the last success of any key, by key. */
  readonly #row = new Map<string, number>();
  /** Failures of each key since its own last success. */
  readonly #ownRow = new Map<string, number>();

  succeeded(key: string, nowMs: number): void {
    this.#share.succeeded(key, nowMs);
    this.#recent.add(nowMs);
    if (this.#row.size > 0) this.#row.clear();
    this.#ownRow.delete(key);
  }

  failed(key: string, nowMs: number): void {
    this.#share.failed(key, nowMs);
    this.#recent.add(nowMs);
    countIn(this.#row, key);
    countIn(this.#ownRow, key);
  }

  /** Reason to take the target out for the key, if there is one. */
  reasonForKey(key: string, nowMs: number, settings: EjectionSettings): string | undefined {
    const inRow = this.#ownRow.get(key) ?? 0;
    if (inRow >= settings.failures) return `${inRow} failures in a row`;
    return tooMany(this.#share.of(key, nowMs), settings);
  }

  /** Reason to take the target out for all keys, if there is one. */
  reasonForAll(nowMs: number, settings: EjectionSettings): string | undefined {
    const needed = Math.max(settings.failures, this.#recent.sum(nowMs) * recentPart);
    const inRow = this.#weightedRow(needed);
    if (inRow >= needed) return `${inRow} failures in a row`;
    return tooMany(this.#share.withoutWorst(nowMs), settings);
  }

  /** The key is out, and starts a new row; its share still counts as its own. */
  forget(key: string): void {
    this.#row.delete(key);
    this.#ownRow.delete(key);
  }

  clear(): void {
    this.#share.clear();
    this.#row.clear();
    this.#ownRow.clear();
  }

  /** Each key counts for less than half of the failures needed. */
  #weightedRow(needed: number): number {
    if (this.#row.size < 3) return 0;
    const most = Math.max(1, Math.floor(needed / 2));
    let sum = 0;
    for (const count of this.#row.values()) sum += Math.min(count, most);
    return sum;
  }
}

function countIn(row: Map<string, number>, key: string): void {
  const known = row.get(key) ?? 0;
  if (known === 0 && row.size >= mostKeys) {
    const [oldest] = row.keys();
    if (oldest !== undefined) row.delete(oldest);
  }
  row.set(key, known + 1);
}

function tooMany(
  { attempts, failures }: Share,
  { leastAttempts, errorPercent }: EjectionSettings,
): string | undefined {
  const isTooMany =
    failures > 0 && attempts >= leastAttempts && failures * 100 >= errorPercent * attempts;
  return isTooMany ? `${failures} of ${attempts} attempts in ten seconds failed` : undefined;
}
