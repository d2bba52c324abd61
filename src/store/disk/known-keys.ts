import { readFile } from "node:fs/promises";
import type { Clock } from "../../domain/clock.ts";
import type { KeyDigest } from "../../domain/keys/peppers.ts";
import { StorageUnavailable, UnusableDatabase } from "../errors.ts";
import type { KeyChanges, KeyStore } from "../store.ts";
import { type KeyLine, readKeyLines } from "./key-lines.ts";

export interface KnownKeysOptions {
  readonly store: Pick<KeyStore, "loadKeys">;
  readonly path: string;
  readonly clock: Pick<Clock, "now">;
  /** One for each pepper: the file may be from before a rotation. */
  readonly digests: readonly KeyDigest[];
  readonly maxAgeMs: number;
}

/** How far the clock may have gone back since the file was written. */
const clockToleranceMs = 60_000;

/** The keys of the database; for a start without it, those of the file on disk. */
export class KnownKeys implements Pick<KeyStore, "loadKeys"> {
  readonly #options: KnownKeysOptions;
  /** Kept until the database answers, because a file is read in pages. */
  #lines: readonly KeyLine[] = [];

  constructor(options: KnownKeysOptions) {
    this.#options = options;
  }

  async loadKeys(since: number, limit: number): Promise<KeyChanges> {
    try {
      const page = await this.#options.store.loadKeys(since, limit);
      this.#lines = [];
      return page;
    } catch (error) {
      // A database that is the wrong one does not vouch for the keys of the right one.
      if (!(error instanceof StorageUnavailable) || error instanceof UnusableDatabase) throw error;
      if (since === 0) this.#lines = await this.#readFile();
      const page = pageOf(this.#lines, since, this.#options.clock.now());
      if (page === undefined) throw error;
      return page;
    }
  }

  async #readFile(): Promise<readonly KeyLine[]> {
    const { path, digests, clock, maxAgeMs } = this.#options;
    // Without a file there is nothing to start from.
    const text = await readFile(path, "utf8").catch(() => "");
    const read = digests.map((digest) => readKeyLines(text, digest));
    const lines = read.find((each) => each.length > 0) ?? [];
    const ageMs = clock.now() - (lines.at(-1)?.at ?? -Infinity);
    return ageMs <= maxAgeMs && ageMs >= -clockToleranceMs ? lines : [];
  }
}

/** Undefined if there is nothing after `since`. */
function pageOf(lines: readonly KeyLine[], since: number, now: number): KeyChanges | undefined {
  const last = lines.at(-1);
  const later = lines.filter(({ epoch, changes }) => epoch > since && changes.length > 0);
  const [page] = later;
  if (last === undefined) return undefined;
  const ageMs = Math.max(0, now - last.at);
  if (page !== undefined) {
    return { changes: page.changes, epoch: page.epoch, hasMore: later.length > 1, ageMs };
  }
  return since === 0 ? { changes: [], epoch: 0, hasMore: false, ageMs } : undefined;
}
