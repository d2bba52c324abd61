import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../domain/clock.ts";
import type { KeyDigest, Peppers } from "../../domain/keys/peppers.ts";
import type { KeyChanges, KeyStore } from "../store.ts";
import {
  KeyFile,
  type KeyFileOptions,
  keyFileSeal,
  type KeyLine,
  readKeyLines,
} from "./key-file.ts";
import { readFile } from "node:fs/promises";
import { StorageUnavailable, UnusableDatabase } from "../errors.ts";

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

type LoadedKeys = Pick<KeyStore, "loadKeys">;

export interface OpenKeyFileOptions extends Pick<KeyFileOptions, "onFailed" | "onWritten"> {
  readonly config: {
    readonly auth: { readonly keepsSnapshot: boolean; readonly snapshotMaxAgeMs: number };
    readonly dataDir: string;
    readonly storage: { readonly backend: "sqlite" | "postgres" };
  };
  readonly clock: Clock;
  readonly peppers: Peppers;
  /** The keys in the database. */
  readonly store: LoadedKeys;
}

interface OpenKeyFile {
  readonly keys: LoadedKeys;
  readonly file: KeyFile | undefined;
}

/** The keys with their copy on disk, if the database may be on another machine. */
export function openKeyFile({ config, peppers, ...parts }: OpenKeyFileOptions): OpenKeyFile {
  const { auth, dataDir, storage } = config;
  const { store } = parts;
  if (storage.backend === "sqlite") return { keys: store, file: undefined };
  const path = join(dataDir, "keys");
  if (!auth.keepsSnapshot) {
    rmSync(path, { force: true });
    return { keys: store, file: undefined };
  }
  const { first, all } = peppers;
  const digests = all.map(keyFileSeal);
  const maxAgeMs = auth.snapshotMaxAgeMs;
  return {
    keys: new KnownKeys({ ...parts, path, digests, maxAgeMs }),
    file: new KeyFile({ ...parts, path, digest: keyFileSeal(first) }),
  };
}
