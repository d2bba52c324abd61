import type { EjectionSettings } from "../../domain/routing-settings.ts";
import { KeyedShare } from "./keyed-share.ts";

/** Below this a share is chance. */
const leastForShare = 5;
/** Keys whose failures are counted apart; those of further ones tell nothing new. */
const mostKeys = 256;

/**
 * Failures of the attempts at one target, and whether they are enough to eject it: for the key
 * whose calls failed, or for all. No key's failures alone eject a target for the others.
 */
export class FailureTally {
  readonly #share = new KeyedShare();
  /** Failures one after the other, whoever called. */
  readonly #row = new Map<string, number>();
  /** Failures one after the other of one key, if there were any. */
  readonly #rows = new Map<string, number>();

  succeeded(key: string, nowMs: number): void {
    this.#share.succeeded(key, nowMs);
    if (this.#row.size > 0) this.#row.clear();
    if (this.#rows.size > 0) this.#rows.delete(key);
  }

  failed(key: string, nowMs: number): void {
    this.#share.failed(key, nowMs);
    countUp(this.#row, key);
    countUp(this.#rows, key);
  }

  /** Why the target is to be ejected for the key; undefined if it is not. */
  reasonForKey(key: string, nowMs: number, settings: EjectionSettings): string | undefined {
    const inRow = this.#rows.get(key) ?? 0;
    if (inRow >= settings.failures) return `${inRow} failures in a row`;
    const { attempts, failures } = this.#share.of(key, nowMs);
    const isTooMany =
      attempts >= settings.leastAttempts && failures * 100 >= settings.errorPercent * attempts;
    return isTooMany ? `${failures} of ${attempts} attempts in ten seconds failed` : undefined;
  }

  /** Why the target is to be ejected for all; undefined if it is not. */
  reasonForAll(nowMs: number, settings: EjectionSettings): string | undefined {
    const inRow = this.#weightedRow(settings);
    if (inRow >= settings.failures) return `${inRow} failures in a row`;
    const { attempts, failures } = this.#share.withoutWorst(nowMs);
    const isTooMany =
      failures > 0 &&
      attempts >= settings.leastAttempts &&
      failures * 100 >= settings.errorPercent * attempts;
    return isTooMany ? `${failures} of ${attempts} attempts in ten seconds failed` : undefined;
  }

  /** From 0 to 1, fair to all keys; 0 where there are too few attempts to tell. */
  failureShare(nowMs: number): number {
    const { attempts, failures } = this.#share.fair(nowMs);
    return attempts < leastForShare ? 0 : failures / attempts;
  }

  forget(key: string): void {
    this.#share.forget(key);
    this.#row.delete(key);
    this.#rows.delete(key);
  }

  clear(): void {
    this.#share.clear();
    this.#row.clear();
    this.#rows.clear();
  }

  /** Of one key, no more than half of the failures that eject count. */
  #weightedRow({ failures }: EjectionSettings): number {
    if (this.#row.size < 2) return 0;
    const most = Math.ceil(failures / 2);
    let sum = 0;
    for (const count of this.#row.values()) sum += Math.min(count, most);
    return sum;
  }
}

function countUp(counts: Map<string, number>, key: string): void {
  const count = counts.get(key);
  if (count !== undefined || counts.size < mostKeys) counts.set(key, (count ?? 0) + 1);
}
