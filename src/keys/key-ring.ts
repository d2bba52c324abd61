import type { UnitHoldings } from "../domain/limits/capacity.ts";
import type { Clock } from "../domain/clock.ts";
import { Coalesced } from "../domain/waiting/coalesced.ts";
import { nextTurn } from "../domain/waiting/wait.ts";
import type { KeyStore } from "../store/store.ts";
import { KeyTable, type EndedSecret, type LiveSecret } from "./key-table.ts";

export interface KeyRingOptions {
  readonly store: Pick<KeyStore, "loadKeys">;
  /** The wall clock decides expiry, the monotonic one the age of the snapshot. */
  readonly clock: Clock;
  /** Interval between polls of the store. */
  readonly intervalMs: number;
  /** Called after every successful load. */
  readonly onReloaded: () => void;
  /** Called when keys have changed. */
  readonly onChanged?: () => void;
  /** Called after every failed load. */
  readonly onReloadFailed: (error: unknown) => void;
}

/** Keys per page; one query reads a page. */
const pageKeys = 500;
/** Missed polls after which the snapshot cannot tell an unknown key from a new one. */
const missedPolls = 10;
/** Limit on ended secrets kept to explain refusals; the oldest go first. */
const endedSecretsLimit = 10_000;

/**
 * The live secrets for authentication, which follow the store. While that is unavailable, the keys
 * as last read stay in use: known keys keep working.
 */
export class KeyRing {
  readonly #options: KeyRingOptions;
  readonly #ended = new Map<string, EndedSecret>();
  #table = new KeyTable();
  #epoch = 0;
  #loadedAt: number | undefined;
  /** Whether the last load failed. */
  #hasFailed = false;
  /** Loads run one at a time, so that none restores what a later one has removed. */
  readonly #loading = new Coalesced(() => this.#load());
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(options: KeyRingOptions) {
    this.#options = options;
  }

  /** By public id. */
  get secrets(): ReadonlyMap<string, LiveSecret> {
    return this.#table.secrets;
  }

  find(publicId: string): LiveSecret | undefined {
    return this.#table.secrets.get(publicId);
  }

  /** Whether a key is neither revoked nor disabled; its secrets may still have ended. */
  isLive(keyId: string): boolean {
    return this.#table.publicIdsOf(keyId) !== undefined;
  }

  /** The secret of a key that works longest; undefined: it has none. */
  longestOf(keyId: string): LiveSecret | undefined {
    const secrets = (this.#table.publicIdsOf(keyId) ?? []).flatMap((id) => this.find(id) ?? []);
    const endOf = ({ secret }: LiveSecret): number => secret.expiresAt ?? Infinity;
    return secrets.toSorted((one, other) => endOf(other) - endOf(one))[0];
  }

  /** The key whose limits a live key has; undefined: the key is not known. */
  limitScopeOf(keyId: string): string | undefined {
    return this.longestOf(keyId)?.key.limitScope;
  }

  /** Units of a pool that live keys hold, as far as this process knows. */
  readonly holdings = (pool: string): UnitHoldings =>
    this.#table.soldUnits.of(pool, this.#options.clock.now());

  /** Units of a pool that one key holds. */
  readonly unitsOf = (pool: string, keyId: string): number =>
    this.#table.soldUnits.ofKey({ pool, keyId }, this.#options.clock.now());

  /** Units sold by pool, without pools of which none are sold. */
  get unitsByPool(): ReadonlyMap<string, number> {
    return this.#table.soldUnits.all(this.#options.clock.now());
  }

  /** A secret that ended while this process ran, or with its key not long before. */
  findEnded(publicId: string): EndedSecret | undefined {
    return this.#ended.get(publicId);
  }

  /** The epoch of the newest change that was read; 0 before the first load. */
  get epoch(): number {
    return this.#epoch;
  }

  /** False until all keys have been read once. */
  get isLoaded(): boolean {
    return this.#loadedAt !== undefined;
  }

  /** Time since the start of the last successful load; infinite before the first. */
  get ageMs(): number {
    if (this.#loadedAt === undefined) return Infinity;
    return this.#options.clock.monotonic() - this.#loadedAt;
  }

  /**
   * Whether an unknown key may be a new one. A first failed load already counts: the key may have
   * been created just before it.
   */
  get isStale(): boolean {
    return this.#hasFailed || this.ageMs > missedPolls * this.#options.intervalMs;
  }

  /**
   * Loads the keys and polls for changes until `stop`. Never rejects: if the store is unavailable,
   * a later poll loads the ring.
   */
  async start(): Promise<void> {
    await this.#poll();
    this.#timer = setInterval(() => void this.#poll(), this.#options.intervalMs);
  }

  /** A load that is running still finishes. */
  stop(): void {
    clearInterval(this.#timer);
  }

  /**
   * Reads the changes. Once it resolves, everything committed before the call is in the snapshot.
   * Rejects when the store cannot be read; the next poll retries.
   */
  reload(): Promise<void> {
    return this.#loading.run();
  }

  async #poll(): Promise<void> {
    // The failure was reported, and the next poll retries.
    await this.#loading.run().catch(() => undefined);
  }

  async #load(): Promise<void> {
    const { clock, onReloaded, onReloadFailed } = this.#options;
    const beganAt = clock.monotonic();
    let ageMs: number | undefined;
    try {
      ageMs = await this.#followChanges();
    } catch (error) {
      this.#hasFailed = true;
      onReloadFailed(error);
      throw error;
    }
    this.#hasFailed = ageMs !== undefined;
    this.#loadedAt = Math.max(this.#loadedAt ?? -Infinity, beganAt - (ageMs ?? 0));
    if (ageMs === undefined) onReloaded();
    else onReloadFailed(new Error("the keys are those on disk"));
  }

  /** Returns the age of what it read if the database is unavailable. */
  async #followChanges(): Promise<number | undefined> {
    const before = this.#epoch;
    // A first load begins again after a failure, perhaps with the keys on disk.
    let table = this.isLoaded ? this.#table : new KeyTable();
    let epoch = before;
    try {
      for (;;) {
        const page = await this.#options.store.loadKeys(epoch, pageKeys);
        if (page.epoch < epoch) {
          // Loads never overlap, so this is another database, such as a restored backup.
          if (table !== this.#table) throw new Error("the epoch of the keys goes back and forth");
          table = new KeyTable();
          epoch = 0;
          continue;
        }
        for (const change of page.changes) this.#remember(table.apply(change));
        if (page.hasMore && page.epoch === epoch) throw new Error("the keys have no next page");
        epoch = page.epoch;
        if (!page.hasMore) this.#table = table;
        // A revocation must not wait for the next page.
        if (table === this.#table) this.#epoch = epoch;
        if (!page.hasMore) return page.ageMs;
        // An embedded database answers without yielding.
        await nextTurn();
      }
    } finally {
      if (this.#epoch !== before) this.#options.onChanged?.();
    }
  }

  #remember(ended: readonly EndedSecret[]): void {
    for (const each of ended) {
      this.#ended.delete(each.secret.publicId);
      this.#ended.set(each.secret.publicId, each);
    }
    for (const publicId of this.#ended.keys()) {
      if (this.#ended.size <= endedSecretsLimit) break;
      this.#ended.delete(publicId);
    }
  }
}

/**
 * Interval between looks for changed keys, in case that their announcement was lost. A look into a
 * database in a file costs next to nothing.
 */
export function keyPollMs({ backend }: { readonly backend: "sqlite" | "postgres" }): number {
  return backend === "sqlite" ? 500 : 1_000;
}

/** What a gateway with these keys lacks; undefined: nothing. */
export function howDegraded({ isStale }: Pick<KeyRing, "isStale">): string | undefined {
  return isStale ? "the database cannot be read; known keys work" : undefined;
}
