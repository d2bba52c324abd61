import type { UsageRecord } from "../usage/usage.ts";
import type { EndUserForwarding } from "../upstream-settings.ts";
import { encodeBase62 } from "./base62.ts";
import { createKeyDigest, type KeyDigest, type Peppers } from "./peppers.ts";

/** What a caller names its end users and caches. */
interface Names {
  readonly user?: string | undefined;
  readonly safetyIdentifier?: string | undefined;
  readonly promptCacheKey?: string | undefined;
}

const named = ["user", "safetyIdentifier", "promptCacheKey"] as const satisfies (keyof Names)[];

/** An end user of an account, without its name. Neither value reveals the other. */
export interface EndUserMark {
  /** `eu_` and 16 letters and digits: in rows of calls, and as upstreams see it. */
  readonly pseudonym: string;
  /** Where its limits are counted. */
  readonly scope: string;
}

/**
 * Names of end users and caches as the ledger and upstreams see them. A pseudonym is an HMAC of the
 * account and the name under a key derived from the first pepper: who reads it tells end users of one
 * account apart, learns nothing about them, and cannot link them across accounts. Nor can a caller use
 * the cache of another account by its name.
 */
export class Pseudonyms {
  readonly #digestOf: KeyDigest;
  readonly #digestsOf: EndUserDigests;

  constructor({ first }: Pick<Peppers, "first">) {
    this.#digestOf = createKeyDigest(first.digest("names of end users"));
    this.#digestsOf = endUserDigests({ all: [first] });
  }

  /** As budgets name an end user that is stored so. */
  spenderOf(accountId: string, endUser: string): string {
    return this.#digestsOf({ accountId, endUser })[0] ?? "";
  }

  /** Spaces around a name do not count. */
  ofEndUser(accountId: string, name: string): EndUserMark {
    const digest = this.#digest(accountId, name.trim());
    return { pseudonym: `eu_${lettersOf(digest)}`, scope: digest.toString("hex", 16) };
  }

  /**
   * The fields as they may leave for an upstream; the same object if it has no names. Caches are no end
   * users: their names always leave.
   */
  hide<Fields extends Names>(fields: Fields, accountId: string, sent: EndUserForwarding): Fields {
    if (sent === "as_sent" || named.every((name) => fields[name] === undefined)) return fields;
    const hidden: Record<string, string | undefined> = {};
    for (const name of named) {
      const value = fields[name];
      if (value === undefined) continue;
      if (name === "promptCacheKey") {
        hidden[name] = `pc_${lettersOf(this.#digest(`cache\n${accountId}`, value))}`;
      } else {
        const isSent = sent === "pseudonym";
        hidden[name] = isSent ? this.ofEndUser(accountId, value).pseudonym : undefined;
      }
    }
    return { ...fields, ...hidden };
  }

  #digest(accountId: string, name: string): Buffer {
    return this.#digestOf(`${accountId}\n${name}`);
  }
}

type StoredEndUser = Pick<UsageRecord, "accountId" | "endUser">;

/**
 * End users, as calls have them, in what outlives their erasure, or is in an index: as digests that name
 * nobody, under each pepper. The first one is written.
 */
export type EndUserDigests = (of: StoredEndUser) => readonly string[];

export function endUserDigests({ all }: Pick<Peppers, "all">): EndUserDigests {
  const digests = all.map(({ digest }) => createKeyDigest(digest("erased end users")));
  return ({ accountId, endUser = "" }) => {
    return digests.map((of) => of(`${accountId}\n${endUser}`).toString("hex"));
  };
}

const eightLetters = 62 ** 8;

/** Of the first half of a digest. */
function lettersOf(digest: Buffer): string {
  const part = (start: number): string => {
    return encodeBase62(digest.readUIntBE(start, 6) % eightLetters, 8);
  };
  return part(0) + part(6);
}
