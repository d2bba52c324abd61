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

/** The peppers of an installation: the first makes what is new, all verify what is there. */
export class Peppers {
  readonly first: PepperKey;
  /** The first one included. */
  readonly all: readonly PepperKey[];

  constructor(first: Secret, older: readonly Secret[] = []) {
    this.first = keyOf(first);
    this.all = [this.first, ...older.map(keyOf)];
  }

  find(mark: string | null | undefined): PepperKey | undefined {
    return this.all.find((pepper) => pepper.mark === mark);
  }
}

function keyOf(pepper: Secret): PepperKey {
  const digest = createKeyDigest(pepper.reveal());
  return { mark: Buffer.from(digest("which pepper")).toString("hex"), digest };
}
