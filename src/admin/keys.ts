import { generateApiKey } from "../domain/api-key.ts";
import { randomBase62, type RandomBytes } from "../domain/base62.ts";
import type { Clock } from "../domain/clock.ts";
import type { Key } from "../domain/key.ts";
import type { Limits } from "../domain/plan.ts";
import type { KeyDigest } from "../pipeline/authenticate.ts";
import type { KeyStore } from "../storage/store.ts";

export interface NewKey {
  readonly application: string;
  readonly environment: string;
  readonly plan: string;
  /** Required by custom plans. */
  readonly limits: Limits | undefined;
}

export interface IssuedKey {
  readonly key: Key;
  /** The API key itself: shown once, never stored. */
  readonly text: string;
}

export interface KeyServices {
  readonly store: KeyStore;
  readonly digest: KeyDigest;
  readonly clock: Clock;
  readonly random: RandomBytes;
}

/** Issues a key with its first secret. Only a digest of the secret is kept. */
export async function issueKey(wanted: NewKey, services: KeyServices): Promise<IssuedKey> {
  const { store, digest, clock, random } = services;
  const { publicId, text } = generateApiKey(random);
  const createdAt = clock.now();
  const id = `key_${randomBase62(16, random)}`;
  const key: Key = { id, ...wanted, createdAt, revokedAt: undefined };
  const secret = { publicId, keyId: id, digest: digest(text), createdAt, expiresAt: undefined };
  await store.create(key, secret);
  return { key, text };
}
