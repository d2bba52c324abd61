import { timingSafeEqual } from "node:crypto";
import type { Secret } from "./secret.ts";

/** HMAC-SHA-256 of a text under a pepper. */
export type KeyDigest = (text: string) => Uint8Array;

export function createKeyDigest(pepper: string | Uint8Array): KeyDigest {
  const keyed = new Bun.CryptoHasher("sha256", pepper);
  return (text) => keyed.copy().update(text).digest();
}

/** One pepper, known by what it makes. */
export interface PepperKey {
  /** Tells peppers apart and says nothing of them; stored beside what was made under it. */
  readonly mark: string;
  readonly digest: KeyDigest;
}

/** A digest, and the mark of the pepper it was made under. */
export interface PepperedDigest {
  readonly digest: Uint8Array;
  readonly pepper: string;
}

/** The peppers of an installation: the first makes what is new, all verify what is there. */
export class Peppers {
  readonly first: PepperKey;
  /** The first one included. */
  readonly all: readonly PepperKey[];
  readonly #nobody: Uint8Array;

  constructor(first: Secret, older: readonly Secret[] = []) {
    this.first = keyOf(first);
    this.all = [this.first, ...older.map(keyOf)];
    this.#nobody = new Uint8Array(32);
  }

  /** Of a new credential. */
  digest(text: string): PepperedDigest {
    return { digest: this.first.digest(text), pepper: this.first.mark };
  }

  /**
   * Under which pepper a digest is that of a text. Where nothing is stored, or it is of another text,
   * the work is the same, so that its time tells nothing.
   */
  match(text: string, stored: Uint8Array | undefined): PepperKey | undefined {
    const expected = stored ?? this.#nobody;
    const found = this.all.find(({ digest }) => isSame(digest(text), expected));
    return stored === undefined ? undefined : found;
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
  return { mark: Buffer.from(digest("which pepper")).toString("hex"), digest };
}
