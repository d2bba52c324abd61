import type { Peppers } from "../../domain/keys/peppers.ts";
import type { EndUserNames } from "../../domain/upstream-settings.ts";

/** What a caller names its end users and caches. */
interface Names {
  readonly user?: string | undefined;
  readonly safetyIdentifier?: string | undefined;
  readonly promptCacheKey?: string | undefined;
}

const named = ["user", "safetyIdentifier", "promptCacheKey"] as const satisfies (keyof Names)[];

/**
 * Names of end users and caches as upstreams see them. A pseudonym is an HMAC of the account and the
 * name under a key derived from the first pepper: a provider tells end users of one account apart,
 * learns nothing about them, and cannot link them across accounts. Nor can a caller use the cache of
 * another account by its name.
 */
export class Pseudonyms {
  readonly #key: Bun.CryptoHasher;

  constructor({ first }: Pick<Peppers, "first">) {
    this.#key = new Bun.CryptoHasher("sha256", first.digest("names of end users"));
  }

  /**
   * The fields as they may leave for an upstream; the same object if it has no names. A dropped name
   * is undefined. Caches are no end users: their names are never dropped.
   */
  hide<Fields extends Names>(fields: Fields, accountId: string, sent: EndUserNames): Fields {
    if (sent === "as_sent" || named.every((name) => fields[name] === undefined)) return fields;
    const hidden: Record<string, string | undefined> = {};
    for (const name of named) {
      const value = fields[name];
      if (value === undefined) continue;
      const isDropped = sent === "dropped" && name !== "promptCacheKey";
      hidden[name] = isDropped ? undefined : this.#of(accountId, value);
    }
    return { ...fields, ...hidden };
  }

  /** Half of the HMAC, because providers accept up to 64 characters. */
  #of(accountId: string, name: string): string {
    return this.#key.copy().update(`${accountId}\n${name}`).digest("hex").slice(0, 32);
  }
}
