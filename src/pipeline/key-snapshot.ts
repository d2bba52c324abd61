import { createNetworkList, type NetworkList } from "../domain/network.ts";
import type { KeyChange, StoredSecret } from "../storage/store.ts";

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
  readonly byPublicId: ReadonlyMap<string, LiveSecret>;
  /** Public ids by key id. */
  readonly byKey: ReadonlyMap<string, readonly string[]>;
}

export const noKeys: KeySnapshot = { byPublicId: new Map(), byKey: new Map() };

/** Collects changes of a snapshot and becomes the next one. */
export class KeySnapshotDraft {
  readonly #base: KeySnapshot;
  readonly #ended: EndedSecret[] = [];
  #byPublicId: Map<string, LiveSecret> | undefined;
  #byKey: Map<string, readonly string[]> | undefined;

  constructor(base: KeySnapshot) {
    this.#base = base;
  }

  /** Secrets that the changes took away. */
  get ended(): readonly EndedSecret[] {
    return this.#ended;
  }

  /** Puts a key's secrets in the place of those it had. */
  apply({ keyId, live }: KeyChange): void {
    // Nearly every poll finds nothing, so the copies are made at the first change.
    const byPublicId = (this.#byPublicId ??= new Map(this.#base.byPublicId));
    const byKey = (this.#byKey ??= new Map(this.#base.byKey));
    const secrets = live?.secrets ?? [];
    const publicIds = secrets.map(({ publicId }) => publicId);
    for (const publicId of byKey.get(keyId) ?? []) {
      if (publicIds.includes(publicId)) continue;
      const secret = byPublicId.get(publicId);
      byPublicId.delete(publicId);
      if (secret === undefined) continue;
      this.#ended.push({ ...secret, rule: live === undefined ? "key_disabled" : "key_expired" });
    }
    byKey.delete(keyId);
    if (live === undefined || publicIds.length === 0) return;
    byKey.set(keyId, publicIds);
    const { key } = live;
    const networks =
      key.allowedNetworks === undefined ? undefined : createNetworkList(key.allowedNetworks);
    for (const secret of secrets) byPublicId.set(secret.publicId, { key, secret, networks });
  }

  /** Applies nothing more to the draft afterwards. */
  finish(): KeySnapshot {
    if (this.#byPublicId === undefined || this.#byKey === undefined) return this.#base;
    return { byPublicId: this.#byPublicId, byKey: this.#byKey };
  }
}
