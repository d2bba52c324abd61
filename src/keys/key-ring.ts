import type { UnitHoldings } from "../domain/limits/capacity.ts";
import type { Clock } from "../domain/clock.ts";
import { nextTurn } from "../domain/waiting/next-turn.ts";
import type { KeyChanges, KeyStore } from "../store/store.ts";
import {
  KeySnapshotDraft,
  noKeys,
  type EndedSecret,
  type KeySnapshot,
  type LiveSecret,
} from "./key-snapshot.ts";
import type { ShardedMap } from "./sharded-map.ts";

export interface KeyRingOptions {
  readonly store: Pick<KeyStore, "loadKeys">;
  /** Its wall clock says which keys have expired, its monotonic side how old the snapshot is. */
  readonly clock: Clock;
  /** How often the store is asked for changes. */
  readonly intervalMs: number;
  /** A store that hangs must not keep the next try from beginning. Default 5000. */
  readonly pageTimeoutMs?: number;
  /** Told of every load that went well. */
  readonly onReloaded: () => void;
  /** Told when keys have changed. */
  readonly onChanged?: () => void;
  /** Told of every load that failed. */
  readonly onReloadFailed: (error: unknown) => void;
}

/** Keys of one page; a page is read without a pause. */
const pageKeys = 500;
const defaultPageTimeoutMs = 5_000;
/** Silent polls after which the snapshot cannot tell an unknown key from a new one. */
const missedPolls = 10;
/** Remembered to explain refusals, oldest forgotten first. */
const endedSecretsLimit = 10_000;

/**
 * The live secrets as authentication sees them: a snapshot that is replaced whole, never edited.
 * While the store cannot be read, the last snapshot holds: known keys keep working.
 */
export class KeyRing {
  readonly #options: KeyRingOptions;
  readonly #ended = new Map<string, EndedSecret>();
  #snapshot: KeySnapshot = noKeys();
  #epoch = 0;
  #loadedAt: number | undefined;
  /** Whether the last load did. */
  #hasFailed = false;
  #running: Promise<void> | undefined;
  #queued: Promise<void> | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(options: KeyRingOptions) {
    this.#options = options;
  }

  /** By public id. */
  get secrets(): ShardedMap<LiveSecret> {
    return this.#snapshot.byPublicId;
  }

  find(publicId: string): LiveSecret | undefined {
    return this.#snapshot.byPublicId.get(publicId);
  }

  /** Whether a key is neither revoked nor disabled; its secrets may still have ended. */
  isLive(keyId: string): boolean {
    return this.#snapshot.byKey.get(keyId) !== undefined;
  }

  /** Units of a pool that live keys hold, as far as this process knows; the same cost at any size. */
  readonly holdings = (pool: string): UnitHoldings =>
    this.#snapshot.soldUnits.of(pool, this.#options.clock.now());

  /** Those of one key. */
  readonly unitsOf = (pool: string, keyId: string): number =>
    this.#snapshot.soldUnits.ofKey({ pool, keyId }, this.#options.clock.now());

  /** The sum of them, for every pool of which there are any. */
  get unitsByPool(): ReadonlyMap<string, number> {
    return this.#snapshot.soldUnits.all(this.#options.clock.now());
  }

  /** A secret that ended while this process ran, or with its key not long before. */
  findEnded(publicId: string): EndedSecret | undefined {
    return this.#ended.get(publicId);
  }

  /** False until all keys were read once. */
  get isLoaded(): boolean {
    return this.#loadedAt !== undefined;
  }

  /** Since the beginning of the last load that went well; infinite before the first one. */
  get ageMs(): number {
    if (this.#loadedAt === undefined) return Infinity;
    return this.#options.clock.monotonic() - this.#loadedAt;
  }

  /**
   * Whether a key that is unknown here may well be good: it may have been made just before the
   * store failed, so the first failure counts.
   */
  get isStale(): boolean {
    return this.#hasFailed || this.ageMs > missedPolls * this.#options.intervalMs;
  }

  /**
   * Tries to read the keys and goes on asking for changes until `stop`. Never rejects: with the
   * store away it is not loaded yet, and the first answer mends that.
   */
  async start(): Promise<void> {
    await this.#poll();
    this.#timer = setInterval(() => void this.#poll(), this.#options.intervalMs);
  }

  /** What is being read is still taken in. */
  stop(): void {
    clearInterval(this.#timer);
  }

  /**
   * Reads what has changed. When it resolves, whatever was committed before the call is followed.
   * Rejects when the store cannot be read; the next poll then tries again.
   */
  reload(): Promise<void> {
    // A load under way may have read before the change that the caller speaks of.
    if (this.#running === undefined) return this.#begin();
    return (this.#queued ??= this.#beginAfter(this.#running));
  }

  async #poll(): Promise<void> {
    if (this.#running !== undefined) return;
    // The failure was reported, and the next poll tries again.
    await this.#begin().catch(() => undefined);
  }

  async #beginAfter(earlier: Promise<void>): Promise<void> {
    await earlier.catch(() => undefined);
    this.#queued = undefined;
    return this.#begin();
  }

  /** One load at a time, so none can bring back what a later one has taken away. */
  #begin(): Promise<void> {
    const loading = this.#load().finally(() => {
      if (this.#queued === undefined) this.#running = undefined;
    });
    this.#running = loading;
    return loading;
  }

  async #load(): Promise<void> {
    const { clock, onReloaded, onReloadFailed } = this.#options;
    const beganAt = clock.monotonic();
    try {
      await this.#followChanges();
    } catch (error) {
      this.#hasFailed = true;
      onReloadFailed(error);
      throw error;
    }
    this.#hasFailed = false;
    this.#loadedAt = beganAt;
    onReloaded();
  }

  async #followChanges(): Promise<void> {
    let draft = new KeySnapshotDraft(this.#snapshot);
    let epoch = this.#epoch;
    let isWhole = true;
    try {
      for (;;) {
        const page = await this.#readPage(epoch);
        if (page.epoch < epoch) {
          // Loads never overlap, so this is another database, such as a backup put back.
          if (!isWhole) throw new Error("the epoch of the keys goes back and forth");
          draft = new KeySnapshotDraft(noKeys());
          epoch = 0;
          isWhole = false;
          continue;
        }
        for (const change of page.changes) draft.apply(change);
        if (page.hasMore && page.epoch === epoch) throw new Error("the keys have no next page");
        epoch = page.epoch;
        if (!page.hasMore) break;
        // Between two pages: the answers of an embedded database come at once.
        await nextTurn();
      }
      isWhole = true;
    } finally {
      // What was read before a failure holds: a revocation must not wait for the page after it.
      if (isWhole) this.#publish(draft, epoch);
    }
  }

  #publish(draft: KeySnapshotDraft, epoch: number): void {
    const hasChanged = epoch !== this.#epoch;
    this.#snapshot = draft.finish();
    this.#epoch = epoch;
    for (const ended of draft.ended) {
      this.#ended.delete(ended.secret.publicId);
      this.#ended.set(ended.secret.publicId, ended);
    }
    const surplus = this.#ended.size - endedSecretsLimit;
    const oldest = [...this.#ended.keys()].slice(0, Math.max(0, surplus));
    for (const publicId of oldest) this.#ended.delete(publicId);
    if (hasChanged) this.#options.onChanged?.();
  }

  async #readPage(epoch: number): Promise<KeyChanges> {
    const { store, pageTimeoutMs = defaultPageTimeoutMs } = this.#options;
    const { promise: timedOut, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => reject(new Error(`the keys were not read within ${pageTimeoutMs / 1_000} s`)),
      pageTimeoutMs,
    );
    try {
      return await Promise.race([store.loadKeys(epoch, pageKeys), timedOut]);
    } finally {
      clearTimeout(timer);
    }
  }
}
