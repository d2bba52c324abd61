import { createNetworkList, type NetworkList } from "../domain/network.ts";
import type { KeySecret } from "../domain/keys/key.ts";
import type { KeyChange, KeyEndReason, StoredSecret } from "../store/store.ts";
import { SoldUnits } from "./sold-units.ts";

/** A live secret, ready for authentication. */
export interface LiveSecret extends StoredSecret {
  /** Networks its key may be used from, parsed once; undefined: any. */
  readonly networks: NetworkList | undefined;
}

/** A secret that no longer works: seen live by this process, or ended recently. */
export interface EndedSecret extends StoredSecret, SecretEnd {}

interface SecretEnd {
  readonly rule: KeyEndReason | "key_removed" | "secret_ended";
  /** Milliseconds since the epoch; undefined when unknown. */
  readonly at: number | undefined;
}

/** All live keys. */
export class KeyTable {
  readonly #secrets = new Map<string, LiveSecret>();
  /** Public ids by key id; empty for a live key whose secrets have all ended. */
  readonly #byKey = new Map<string, readonly string[]>();
  readonly soldUnits = new SoldUnits();

  /** By public id. */
  get secrets(): ReadonlyMap<string, LiveSecret> {
    return this.#secrets;
  }

  /** Undefined: the key is not live. */
  publicIdsOf(keyId: string): readonly string[] | undefined {
    return this.#byKey.get(keyId);
  }

  /** Replaces the secrets of a key. Returns those that the change removed or reported as ended. */
  apply(change: KeyChange): readonly EndedSecret[] {
    const { keyId, live } = change;
    const ended = [...this.#remove(change), ...endedIn(change)];
    this.soldUnits.set(keyId, live?.key);
    if (live === undefined) {
      this.#byKey.delete(keyId);
      return ended;
    }
    const { key, accountLimits, budgets, secrets } = live;
    const networks =
      key.allowedNetworks === undefined ? undefined : createNetworkList(key.allowedNetworks);
    const publicIds = secrets.map(({ publicId }) => publicId);
    this.#byKey.set(keyId, publicIds);
    for (const secret of secrets) {
      this.#secrets.set(secret.publicId, { key, accountLimits, budgets, secret, networks });
    }
    return ended;
  }

  /** Removes the secrets that the key no longer has. */
  #remove(change: KeyChange): readonly EndedSecret[] {
    const left = change.live?.secrets ?? [];
    const ended: EndedSecret[] = [];
    for (const publicId of this.#byKey.get(change.keyId) ?? []) {
      const known = this.#secrets.get(publicId);
      if (known === undefined || left.some((secret) => secret.publicId === publicId)) continue;
      this.#secrets.delete(publicId);
      const { key, secret } = known;
      ended.push({ key, secret, ...endOf(change, secret) });
    }
    return ended;
  }
}

function endedIn({ ended }: KeyChange): readonly EndedSecret[] {
  if (ended === undefined) return [];
  const { key, reason: rule, at, secrets } = ended;
  return secrets.map((secret) => ({ key, secret, rule, at }));
}

function endOf({ live, ended }: KeyChange, secret: KeySecret): SecretEnd {
  if (live !== undefined) return { rule: "secret_ended", at: secret.expiresAt };
  return { rule: ended?.reason ?? "key_removed", at: ended?.at };
}
