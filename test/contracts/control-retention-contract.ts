import { beforeEach, describe, expect, test } from "bun:test";
import type { ControlRetention } from "../../src/store/control-store.ts";
import type { ControlStore } from "../../src/store/repositories/control-store.ts";
import { sessionOf } from "./access-contract.ts";
import { auditEntryOf, insertKey, keyOf, secretOf, tokenOf, userOf } from "./control-fixtures.ts";

const nothing: ControlRetention = { audit: 0, keys: 0, access: 0, replies: 0 };

/** What is too old goes, and only that. */
export function controlRetentionContract(create: () => ControlStore | Promise<ControlStore>): void {
  describe("retention", () => {
    const { signal } = new AbortController();
    let store: ControlStore;
    beforeEach(async () => {
      store = await create();
    });

    async function appendAudit(times: readonly number[]): Promise<void> {
      await store.change(async (to) => {
        for (const at of times) await to.audit.append(auditEntryOf(at));
      });
    }

    async function auditTimes(): Promise<readonly number[]> {
      const page = await store.read((view) => view.audit.list({}, { limit: 100 }));
      return page.items.map(({ at }) => at);
    }

    test("old entries go from the beginning, and the rest can still be verified", async () => {
      await appendAudit([10, 20, 30, 40, 50]);
      const before = await store.verifyAudit(signal);
      expect(await store.prune({ ...nothing, audit: 31 }, 2)).toBe(2);
      expect(await auditTimes()).toEqual([50, 40, 30]);
      expect(await store.prune({ ...nothing, audit: 31 }, 2)).toBe(1);
      expect(await store.prune({ ...nothing, audit: 31 }, 2)).toBe(0);
      expect(await store.verifyAudit(signal)).toEqual({
        ...before,
        entries: 2,
        first: { sequence: 4, at: 40 },
      });
    });

    test("a young entry keeps those behind it, whatever the clock said then", async () => {
      await appendAudit([10, 90, 20]);
      expect(await store.prune({ ...nothing, audit: 50 }, 100)).toBe(1);
      expect(await auditTimes()).toEqual([20, 90]);
    });

    test("the last entry stays, and the chain continues from it", async () => {
      await appendAudit([10, 20]);
      const { lastDigest } = await store.verifyAudit(signal);
      expect(await store.prune({ ...nothing, audit: 100 }, 100)).toBe(1);
      expect(await store.verifyAudit(signal)).toEqual({
        isIntact: true,
        entries: 1,
        lastDigest,
        problem: undefined,
        first: { sequence: 2, at: 20 },
      });
      const record = await store.change((to) => to.audit.append(auditEntryOf(30)));
      expect(record).toMatchObject({ sequence: 3, previousDigest: lastDigest });
      expect(await store.verifyAudit(signal)).toMatchObject({ isIntact: true, entries: 2 });
    });

    test("revoked keys, secrets, sessions, tokens and answers go when their time is over", async () => {
      await fill(store);
      const limits = { audit: 0, keys: 100, access: 100, replies: 100 };
      // One revoked key, one ended secret, one session, two tokens, one answer.
      expect(await store.prune(limits, 10)).toBe(6);
      expect(await store.prune(limits, 10)).toBe(0);
      await store.read(async (view) => {
        const { items } = await view.keys.list({}, { limit: 10 });
        expect(items.map(({ id }) => id)).toEqual(["key_young", "key_a"]);
        const secrets = await view.secrets.ofKey("key_a");
        expect(secrets.map(({ publicId }) => publicId)).toEqual(["young", "of_key_a"]);
        expect(await view.secrets.get("of_old")).toBeUndefined();
        expect(await view.sessions.get("old")).toBeUndefined();
        expect(await view.sessions.get("young")).toBeDefined();
        const tokens = await view.tokens.list({}, { limit: 10 });
        expect(tokens.items.map(({ id }) => id)).toEqual(["tok_young"]);
        expect(await view.replies.get("old")).toBeUndefined();
        expect(await view.replies.get("young")).toBeDefined();
      });
    });

    test("at most the given number of rows goes at once", async () => {
      await store.change(async (to) => {
        await to.users.insert(userOf("user_a"));
        for (const id of ["1", "2", "3"]) await to.sessions.insert(sessionOf(id, "user_a", 50));
      });
      const limits = { ...nothing, access: 100 };
      expect(await store.prune(limits, 2)).toBe(2);
      expect(await store.prune(limits, 2)).toBe(1);
    });
  });
}

async function fill(store: ControlStore): Promise<void> {
  const names = { account: "acct_a", application: "app_a", key: "key_a" };
  const { application } = await insertKey(store, names);
  await store.change(async (to) => {
    await to.keys.insert(keyOf("key_old", application, { revokedAt: 99 }));
    await to.secrets.insert(secretOf("of_old", "key_old"));
    await to.keys.insert(keyOf("key_young", application, { revokedAt: 100 }));
    await to.secrets.insert(secretOf("old", "key_a", { expiresAt: 99 }));
    await to.secrets.insert(secretOf("young", "key_a", { expiresAt: 100 }));
    await to.users.insert(userOf("user_a"));
    await to.sessions.insert(sessionOf("old", "user_a", 99));
    await to.sessions.insert(sessionOf("young", "user_a", 100));
    await to.tokens.insert(tokenOf("tok_old", "user_a", { expiresAt: 99 }));
    await to.tokens.insert(tokenOf("tok_revoked", "user_a", { revokedAt: 99 }));
    await to.tokens.insert(tokenOf("tok_young", "user_a", { revokedAt: 100, expiresAt: 100 }));
    const reply = { requestDigest: "", status: 200, body: undefined, shownUntil: 0 };
    await to.replies.put({ ...reply, id: "old", createdAt: 99 });
    await to.replies.put({ ...reply, id: "young", createdAt: 100 });
  });
}
