import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../domain/clock.ts";
import type { Peppers } from "../../domain/keys/peppers.ts";
import type { KeyStore } from "../store.ts";
import { KeyFile, type KeyFileOptions } from "./key-file.ts";
import { keyFileSeal } from "./key-lines.ts";
import { KnownKeys } from "./known-keys.ts";

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
