import { createNetworkList, type NetworkList } from "../domain/network.ts";
import type { KeySecret } from "../domain/keys/key.ts";
import type { KeyChange, KeyEndReason, StoredSecret } from "../store/store.ts";
import { ShardedMap, type ShardedMapEdit } from "./sharded-map.ts";
import { SoldUnits, type SoldUnitsEdit } from "./sold-units.ts";

/** A live secret, ready for authentication. */
export interface LiveSecret extends StoredSecret {
  /** Networks its key may be used from, parsed once; undefined: any. */
  readonly networks: NetworkList | undefined;
}

/** How a secret ended. */
export interface SecretEnd {
  readonly rule: KeyEndReason | "key_removed" | "secret_ended";
  /** Milliseconds since the epoch; undefined when unknown. */
  readonly at: number | undefined;
}

/** A secret that no longer works: seen live by this process, or ended recently. */
export interface EndedSecret extends StoredSecret, SecretEnd {}

/** All live secrets at one time. Immutable. */
export interface KeySnapshot {
  readonly byPublicId: ShardedMap<LiveSecret>;
  /** Public ids by key id; empty for a live key whose secrets have all ended. */
  readonly byKey: ShardedMap<readonly string[]>;
  readonly soldUnits: SoldUnits;
}

export function noKeys(): KeySnapshot {
  return {
    byPublicId: ShardedMap.empty(),
    byKey: ShardedMap.empty(),
    soldUnits: SoldUnits.none(),
  };
}

/** Applies changes to a snapshot to make the next one. */
export class KeySnapshotDraft {
  readonly #byPublicId: ShardedMapEdit<LiveSecret>;
  readonly #byKey: ShardedMapEdit<readonly string[]>;
  readonly #soldUnits: SoldUnitsEdit;
  readonly #ended: EndedSecret[] = [];

  constructor(base: KeySnapshot) {
    this.#byPublicId = base.byPublicId.edit();
    this.#byKey = base.byKey.edit();
    this.#soldUnits = base.soldUnits.edit();
  }

  /** Secrets that the changes removed or reported as ended. */
  get ended(): readonly EndedSecret[] {
    return this.#ended;
  }

  /** Replaces the secrets of a key. */
  apply(change: KeyChange): void {
    const { keyId, live, ended } = change;
    const secrets = live?.secrets ?? [];
    const publicIds = secrets.map(({ publicId }) => publicId);
    for (const publicId of this.#byKey.get(keyId) ?? []) {
      if (publicIds.includes(publicId)) continue;
      const known = this.#byPublicId.get(publicId);
      this.#byPublicId.delete(publicId);
      if (known === undefined) continue;
      const { key, secret } = known;
      this.#ended.push({ key, secret, ...endOf(change, secret) });
    }
    if (ended !== undefined) {
      const { key, reason: rule, at } = ended;
      for (const secret of ended.secrets) this.#ended.push({ key, secret, rule, at });
    }
    this.#soldUnits.set(keyId, live?.key);
    this.#byKey.delete(keyId);
    if (live === undefined) return;
    this.#byKey.set(keyId, publicIds);
    const { key, accountLimits } = live;
    const networks =
      key.allowedNetworks === undefined ? undefined : createNetworkList(key.allowedNetworks);
    for (const secret of secrets) {
      this.#byPublicId.set(secret.publicId, { key, accountLimits, secret, networks });
    }
  }

  /** The draft must not be used afterwards. */
  finish(): KeySnapshot {
    return {
      byPublicId: this.#byPublicId.finish(),
      byKey: this.#byKey.finish(),
      soldUnits: this.#soldUnits.finish(),
    };
  }
}

function endOf({ live, ended }: KeyChange, secret: KeySecret): SecretEnd {
  if (live !== undefined) return { rule: "secret_ended", at: secret.expiresAt };
  return { rule: ended?.reason ?? "key_removed", at: ended?.at };
}
