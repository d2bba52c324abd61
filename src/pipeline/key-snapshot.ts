import { createNetworkList, type NetworkList } from "../domain/network.ts";
import type { KeyChange, StoredSecret } from "../storage/store.ts";
import { ShardedMap, type ShardedMapEdit } from "./sharded-map.ts";

/** A live secret, ready to be checked against a request. */
export interface LiveSecret extends StoredSecret {
  /** Where its key may be used from; undefined: anywhere. Read once, not at every call. */
  readonly networks: NetworkList | undefined;
}

/** A secret that worked while this process has run, and why it does not any more. */
export interface EndedSecret extends StoredSecret {
  readonly rule: "key_disabled" | "key_expired";
}

/** All live secrets at one time. Never edited: changes make another one. */
export interface KeySnapshot {
  readonly byPublicId: ShardedMap<LiveSecret>;
  /** Public ids by key id; a key whose secrets have all ended is there without any. */
  readonly byKey: ShardedMap<readonly string[]>;
}

export function noKeys(): KeySnapshot {
  return { byPublicId: ShardedMap.empty(), byKey: ShardedMap.empty() };
}

/** Collects changes of a snapshot and becomes the next one. */
export class KeySnapshotDraft {
  readonly #byPublicId: ShardedMapEdit<LiveSecret>;
  readonly #byKey: ShardedMapEdit<readonly string[]>;
  readonly #ended: EndedSecret[] = [];

  constructor(base: KeySnapshot) {
    this.#byPublicId = base.byPublicId.edit();
    this.#byKey = base.byKey.edit();
  }

  /** Secrets that the changes took away. */
  get ended(): readonly EndedSecret[] {
    return this.#ended;
  }

  /** Puts a key's secrets in the place of those it had. */
  apply({ keyId, live }: KeyChange): void {
    const secrets = live?.secrets ?? [];
    const publicIds = secrets.map(({ publicId }) => publicId);
    for (const publicId of this.#byKey.get(keyId) ?? []) {
      if (publicIds.includes(publicId)) continue;
      const secret = this.#byPublicId.get(publicId);
      this.#byPublicId.delete(publicId);
      if (secret === undefined) continue;
      this.#ended.push({ ...secret, rule: live === undefined ? "key_disabled" : "key_expired" });
    }
    this.#byKey.delete(keyId);
    if (live === undefined) return;
    this.#byKey.set(keyId, publicIds);
    const { key } = live;
    const networks =
      key.allowedNetworks === undefined ? undefined : createNetworkList(key.allowedNetworks);
    for (const secret of secrets) this.#byPublicId.set(secret.publicId, { key, secret, networks });
  }

  /** Nothing may be applied afterwards. */
  finish(): KeySnapshot {
    return { byPublicId: this.#byPublicId.finish(), byKey: this.#byKey.finish() };
  }
}
