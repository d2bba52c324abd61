import { timingSafeEqual } from "node:crypto";
import type { Peppers } from "../../domain/keys/peppers.ts";
import type { ValueOrigin } from "../../upstreams/adapter.ts";

/** Where a value is from, and whose it is. */
export interface ValueHolder {
  readonly origin: ValueOrigin;
  /** Of the gateway. */
  readonly accountId: string;
}

/**
 * Tags of values that only the upstream that wrote them understands: `s1.<MAC>.<value>`. The MAC
 * covers the origin, the gateway's account and the text beside the value, so a tag is good for
 * nobody else and nowhere else. Nothing is stored: the caller brings the value back inside its tag.
 */
export class ValueTags {
  /** The first makes tags, all verify them. */
  readonly #keys: readonly Bun.CryptoHasher[];

  constructor({ all }: Pick<Peppers, "all">) {
    this.#keys = all.map(
      ({ digest }) => new Bun.CryptoHasher("sha256", digest("opaque values of upstreams")),
    );
  }

  of(holder: ValueHolder): HolderTags {
    return new HolderTags(this.#keys, holder);
  }
}

/** The tags of one account's values from one origin. */
export class HolderTags {
  readonly #keys: readonly Bun.CryptoHasher[];
  readonly #holder: ValueHolder;
  /** For each key, after what is the same for all values. */
  #begun: readonly Bun.CryptoHasher[] | undefined;

  constructor(keys: readonly Bun.CryptoHasher[], holder: ValueHolder) {
    this.#keys = keys;
    this.#holder = holder;
  }

  /** `text`: the readable text that the caller sends back along with the value. */
  tag(value: string, text: string): string {
    return `${prefix}${this.#newMac(value, text)}.${value}`;
  }

  /** The value in a tag; undefined for a text that is not a tag of this holder. */
  open(tagged: string, text: string): string | undefined {
    if (!tagged.startsWith(prefix) || tagged[valueStart - 1] !== ".") return undefined;
    const mac = tagged.slice(prefix.length, valueStart - 1);
    const value = tagged.slice(valueStart);
    return this.#verifies(mac, value, text) ? value : undefined;
  }

  /** The id of a tool call with fields that only its upstream understands. */
  markId(id: string): string {
    return `${id}__${this.#newMac(id, "").slice(0, markLength)}`;
  }

  /** Who wrote the call of an id, and the id to send. */
  readId(id: string): MarkedId {
    if (!isMarkedId(id)) return { id, author: undefined };
    const own = id.slice(0, -idMarkLength);
    if (this.#verifies(id.slice(-markLength), own, "")) return { id: own, author: "this" };
    return { id: id.length > longestId ? own : id, author: "another" };
  }

  #newMac(value: string, text: string): string {
    const [first] = this.#hashers;
    if (first === undefined) throw new Error("there is no pepper");
    return this.#mac(first, value, text);
  }

  /** `mac` may be only the beginning of one. */
  #verifies(mac: string, value: string, text: string): boolean {
    const given = Buffer.from(mac);
    return this.#hashers.some((hasher) => {
      const expected = Buffer.from(this.#mac(hasher, value, text).slice(0, mac.length));
      return given.length === expected.length && timingSafeEqual(given, expected);
    });
  }

  #mac(hasher: Bun.CryptoHasher, value: string, text: string): string {
    const { provesText } = this.#holder.origin;
    // The length tells where the value ends.
    const hash = hasher.copy().update(`\n${value.length}\n`).update(value);
    if (provesText === true) hash.update(text);
    return hash.digest().toString("base64url", 0, macBytes);
  }

  get #hashers(): readonly Bun.CryptoHasher[] {
    if (this.#begun !== undefined) return this.#begun;
    const { origin, accountId } = this.#holder;
    const { wire, model, account } = origin;
    const same = JSON.stringify([wire, model, account, accountId]);
    this.#begun = this.#keys.map((key) => key.copy().update(same));
    return this.#begun;
  }
}

/** Whether the end of an id looks like a mark. */
export function isMarkedId(id: string | undefined): id is string {
  return id !== undefined && idMark.test(id);
}

export interface MarkedId {
  readonly id: string;
  /** Undefined: the id has no mark. */
  readonly author: "this" | "another" | undefined;
}

const prefix = "s1.";
const macBytes = 16;
/** In base64url. */
const macLength = 22;
const valueStart = prefix.length + macLength + 1;

/** Little, as an id has room for little: a forged mark has no benefit but to its forger. */
const markLength = 8;
const idMarkLength = markLength + 2;
const idMark = /__[\w-]{8}$/;
/** In characters; OpenAI takes no longer ones. */
const longestId = 40;
