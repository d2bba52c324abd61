import { beforeEach, describe, expect, test } from "bun:test";
import type { Key, KeySecret } from "../../domain/key.ts";
import type { KeyStore } from "../store.ts";

export function keyOf(id: string, values: Partial<Key> = {}): Key {
  return {
    id,
    application: "search",
    environment: "production",
    plan: "standard",
    limits: undefined,
    createdAt: 1_000,
    revokedAt: undefined,
    ...values,
  };
}

export function secretOf(publicId: string, keyId: string): KeySecret {
  const digest = new Uint8Array(32).fill(publicId.charCodeAt(0));
  return { publicId, keyId, digest, createdAt: 1_000, expiresAt: undefined };
}

/** What every key store must do. */
export function keyStoreContract(name: string, create: () => KeyStore): void {
  describe(`key store contract: ${name}`, () => {
    let store: KeyStore;
    beforeEach(() => {
      store = create();
    });

    test("a key comes back as it was given, with and without limits of its own", async () => {
      const plain = keyOf("key_a");
      const limits = { requestsPerMinute: 7, tokensPerMinute: 900 };
      const custom = keyOf("key_b", { plan: "enterprise", limits, createdAt: 2_000 });
      await store.create(plain, secretOf("aaaaaaaa", "key_a"));
      await store.create(custom, secretOf("bbbbbbbb", "key_b"));
      expect(await store.list()).toEqual([custom, plain]);
    });

    test("a live secret is loaded with its key and its digest, byte for byte", async () => {
      const key = keyOf("key_a");
      const secret = { ...secretOf("aaaaaaaa", "key_a"), expiresAt: 9_000 };
      await store.create(key, secret);
      const [loaded] = await store.loadSecrets();
      expect(loaded?.key).toEqual(key);
      expect({ ...loaded?.secret, digest: Array.from(loaded?.secret.digest ?? []) }).toEqual({
        ...secret,
        digest: Array.from(secret.digest),
      });
    });

    test("a taken id is refused and leaves nothing behind", async () => {
      await store.create(keyOf("key_a"), secretOf("aaaaaaaa", "key_a"));
      const sameKey = store.create(keyOf("key_a"), secretOf("bbbbbbbb", "key_a"));
      expect(sameKey).rejects.toThrow();
      const sameSecret = store.create(keyOf("key_b"), secretOf("aaaaaaaa", "key_b"));
      expect(sameSecret).rejects.toThrow();
      expect(await store.list()).toHaveLength(1);
      expect(await store.loadSecrets()).toHaveLength(1);
    });

    test("a revoked key is listed with the time, and its secrets are gone", async () => {
      await store.create(keyOf("key_a"), secretOf("aaaaaaaa", "key_a"));
      expect(await store.revoke("key_a", 5_000)).toBe(true);
      expect((await store.list())[0]?.revokedAt).toBe(5_000);
      expect(await store.loadSecrets()).toEqual([]);
    });

    test("a second revocation changes nothing, and an unknown key cannot be revoked", async () => {
      await store.create(keyOf("key_a"), secretOf("aaaaaaaa", "key_a"));
      await store.revoke("key_a", 5_000);
      expect(await store.revoke("key_a", 6_000)).toBe(true);
      expect((await store.list())[0]?.revokedAt).toBe(5_000);
      expect(await store.revoke("key_x", 5_000)).toBe(false);
    });
  });
}
