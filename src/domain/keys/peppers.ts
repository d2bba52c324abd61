import { timingSafeEqual } from "node:crypto";
import type { Secret } from "./secret.ts";

/** HMAC-SHA-256 of a text under a pepper. */
export type KeyDigest = (text: string) => Buffer;

export function createKeyDigest(pepper: string | Uint8Array): KeyDigest {
  const keyed = new Bun.CryptoHasher("sha256", pepper);
  return (text) => keyed.copy().update(text).digest();
}

/** One pepper, usable only through its digests. */
export interface PepperKey {
  /** Identifies the pepper without revealing it; stored beside its digests. */
  readonly mark: string;
  readonly digest: KeyDigest;
}

/** A digest and the mark of its pepper. */
export interface PepperedDigest {
  readonly digest: Uint8Array;
  readonly pepper: string;
}

/** The peppers of an installation: the first makes new digests, all verify existing ones. */
export class Peppers {
  readonly first: PepperKey;
  /** Includes the first. */
  readonly all: readonly PepperKey[];
  readonly #unknownDigest: Uint8Array;

  constructor(first: Secret, older: readonly Secret[] = []) {
    this.first = keyOf(first);
    this.all = [this.first, ...older.map(keyOf)];
    this.#unknownDigest = new Uint8Array(32);
  }

  /** Digest of a new credential. */
  digest(text: string): PepperedDigest {
    return { digest: this.first.digest(text), pepper: this.first.mark };
  }

  /** The pepper that made `stored` of a text. Without a match it takes as long. */
  match(text: string, stored: Uint8Array | undefined): PepperKey | undefined {
    const expected = stored ?? this.#unknownDigest;
    for (const pepper of this.all) {
      if (isSame(pepper.digest(text), expected)) return stored && pepper;
    }
    return undefined;
  }

  find(mark: string | null | undefined): PepperKey | undefined {
    return this.all.find((pepper) => pepper.mark === mark);
  }
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}

function keyOf(pepper: Secret): PepperKey {
  const digest = createKeyDigest(pepper.reveal());
  return { mark: digest("which pepper").toString("hex"), digest };
}
