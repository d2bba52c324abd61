import { beforeEach, describe, expect, test } from "bun:test";
import type { ControlStore } from "../../src/store/repositories/control-store.ts";
import { AlreadyExists } from "../../src/store/errors.ts";
import { accountOf, tokenOf, userOf } from "./control-fixtures.ts";
import type { Session } from "../../src/store/entities.ts";

/** Users, their sessions and tokens, and the answers that are kept. */
export function accessContract(create: () => ControlStore | Promise<ControlStore>): void {
  describe("access", () => {
    let store: ControlStore;
    beforeEach(async () => {
      store = await create();
      await store.change(async (to) => {
        await to.accounts.insert(accountOf("acct_a"));
        await to.users.insert(userOf("user_a"));
        await to.users.insert(userOf("user_b", { role: "auditor", accountId: "acct_a" }));
      });
    });

    test("a user comes back as it was given, and is found by its identity", async () => {
      const identity = { issuer: "https://id.example.com", subject: "7" };
      const user = userOf("user_c", {
        role: "account_holder",
        accountId: "acct_a",
        passwordHash: "$argon2id$...",
        identity,
        disabledAt: 5,
        lastSignInAt: 6,
      });
      await store.change((to) => to.users.insert(user));
      await store.read(async (view) => {
        expect(await view.users.get("user_c")).toEqual(user);
        expect(await view.users.findByIdentity(identity.issuer, "7")).toEqual(user);
        expect(await view.users.findByIdentity(identity.issuer, "8")).toBeUndefined();
        expect(await view.users.findByIdentity("https://other.example.com", "7")).toBeUndefined();
      });
    });

    test("an email address or identity is of one user; having none is no identity", async () => {
      const identity = { issuer: "i", subject: "s" };
      await store.change((to) => to.users.update(userOf("user_a", { identity })));
      const email = "user_b@example.com";
      const sameEmail = store.change((to) => to.users.insert(userOf("user_c", { email })));
      expect(sameEmail).rejects.toBeInstanceOf(AlreadyExists);
      const sameIdentity = store.change((to) => to.users.update(userOf("user_b", { identity })));
      expect(sameIdentity).rejects.toBeInstanceOf(AlreadyExists);
      await store.change((to) => to.users.insert(userOf("user_d")));
    });

    test("users are listed by account, role and email address", async () => {
      const list = async (filter: Parameters<typeof listUsers>[1]): Promise<unknown> =>
        (await listUsers(store, filter)).items.map(({ id }) => id);
      expect(await list({})).toEqual(["user_b", "user_a"]);
      expect(await list({ role: "operator" })).toEqual(["user_a"]);
      expect(await list({ accountId: "acct_a" })).toEqual(["user_b"]);
      expect(await list({ email: "user_b@example.com", role: "operator" })).toEqual([]);
    });

    test("a sign-in is noted without a new revision, so no open form is out of date", async () => {
      const before = await store.read((view) => view.users.get("user_a"));
      await store.change((to) => to.users.signedIn("user_a", 77));
      const after = await store.read((view) => view.users.get("user_a"));
      expect(after).toEqual({ ...userOf("user_a"), lastSignInAt: 77 });
      expect(after?.revision).toBe(before?.revision);
    });

    test("a session is seen, ended alone, and ended with all of its user", async () => {
      await store.change(async (to) => {
        for (const id of ["one", "two", "three"]) await to.sessions.insert(sessionOf(id, "user_a"));
        await to.sessions.insert(sessionOf("other", "user_b"));
        await to.sessions.seen("one", 3_000);
        await to.sessions.seen("one", 2_000);
        await to.sessions.delete("two");
        await to.sessions.delete("unknown");
      });
      expect(await store.read((view) => view.sessions.get("one"))).toEqual({
        ...sessionOf("one", "user_a"),
        lastSeenAt: 3_000,
      });
      expect(await store.read((view) => view.sessions.get("two"))).toBeUndefined();
      await store.change((to) => to.sessions.deleteOf("user_a"));
      expect(await store.read((view) => view.sessions.get("three"))).toBeUndefined();
      expect(await store.read((view) => view.sessions.get("other"))).toBeDefined();
    });

    test("open sessions are listed, newest first, of one user or of all", async () => {
      await store.change(async (to) => {
        await to.sessions.insert({ ...sessionOf("old", "user_a"), createdAt: 900 });
        await to.sessions.insert(sessionOf("new", "user_a"));
        await to.sessions.insert(sessionOf("over", "user_a", 2_000));
        await to.sessions.insert({ ...sessionOf("idle", "user_a"), lastSeenAt: 500 });
        await to.sessions.insert({ ...sessionOf("other", "user_b"), address: undefined });
      });
      const open = { now: 2_000, usedSince: 500 };
      const list = async (userId?: string): Promise<readonly string[]> => {
        const page = await store.read((view) => view.sessions.list({ userId, open }, { limit: 9 }));
        return page.items.map(({ id }) => id);
      };
      expect(await list("user_a")).toEqual(["new", "old"]);
      expect(await list()).toEqual(["other", "new", "old"]);
    });

    test("a link is taken once, is replaced by the next one, and ends with its user", async () => {
      const linkOf = (digest: string, userId = "user_a") =>
        ({ userId, digest, purpose: "sign-in", expiresAt: 9_000 }) as const;
      const put = (digest: string): Promise<void> =>
        store.change((to) => to.links.put(linkOf(digest)));
      const find = (digest: string) => store.read((view) => view.links.get(digest));
      const take = (): Promise<boolean> => store.change((to) => to.links.take("second"));
      await put("first");
      expect(await find("first")).toEqual(linkOf("first"));
      await put("second");
      expect(await find("first")).toBeUndefined();
      const takes = await Promise.all(Array.from({ length: 8 }, take));
      expect(takes.filter(Boolean)).toHaveLength(1);
      await put("third");
      await store.change((to) => to.links.deleteOf("user_a"));
      expect(await find("third")).toBeUndefined();
      await store.change((to) => to.links.put(linkOf("fourth", "user_b")));
      await store.change((to) => to.users.delete("user_b"));
      expect(await find("fourth")).toBeUndefined();
    });

    test("a token comes back as it was given, by id and by public id", async () => {
      const token = tokenOf("tok_a", "user_a", { scopes: ["read"] });
      await store.change((to) => to.tokens.insert(token));
      const found = await store.read((view) => view.tokens.findByPublicId("public tok_a"));
      expect({ ...found, digest: [...(found?.digest ?? [])] }).toEqual({
        ...token,
        digest: [...token.digest],
      });
      expect(await store.read((view) => view.tokens.get("tok_a"))).toEqual(found);
      expect(await store.read((view) => view.tokens.findByPublicId("tok_a"))).toBeUndefined();
    });

    test("tokens are listed newest first, of one user or of all, revoked ones included", async () => {
      await store.change(async (to) => {
        await to.tokens.insert(tokenOf("tok_a", "user_a"));
        await to.tokens.insert(tokenOf("tok_b", "user_b", { createdAt: 2_000 }));
        await to.tokens.insert(tokenOf("tok_c", "user_a", { createdAt: 3_000, revokedAt: 3_500 }));
      });
      const list = (filter: { readonly userId?: string }): Promise<readonly string[]> =>
        store.read(async (view) => {
          const first = await view.tokens.list(filter, { limit: 1 });
          const rest = await view.tokens.list(filter, { limit: 9, after: first.next });
          return [...first.items, ...rest.items].map(({ id }) => id);
        });
      expect(await list({})).toEqual(["tok_c", "tok_b", "tok_a"]);
      expect(await list({ userId: "user_a" })).toEqual(["tok_c", "tok_a"]);
    });

    test("a token is revoked once, its last use only moves forward", async () => {
      await store.change(async (to) => {
        await to.tokens.insert(tokenOf("tok_a", "user_a"));
        await to.tokens.insert(tokenOf("tok_b", "user_a"));
        await to.tokens.insert(tokenOf("tok_c", "user_b"));
        await to.tokens.used("tok_a", 3_000);
        await to.tokens.used("tok_a", 2_000);
        await to.tokens.revoke("tok_a", 4_000);
        await to.tokens.revokeOf("user_a", 5_000);
      });
      await store.read(async (view) => {
        expect((await view.tokens.get("tok_a"))?.lastUsedAt).toBe(3_000);
        expect((await view.tokens.get("tok_a"))?.revokedAt).toBe(4_000);
        expect((await view.tokens.get("tok_b"))?.revokedAt).toBe(5_000);
        expect((await view.tokens.get("tok_c"))?.revokedAt).toBeUndefined();
      });
    });

    test("a removed user takes its sessions and tokens along", async () => {
      await store.change(async (to) => {
        await to.sessions.insert(sessionOf("one", "user_a"));
        await to.tokens.insert(tokenOf("tok_a", "user_a"));
        await to.users.delete("user_a");
      });
      expect(await store.read((view) => view.sessions.get("one"))).toBeUndefined();
      expect(await store.read((view) => view.tokens.get("tok_a"))).toBeUndefined();
    });

    test("an answer is kept, and can be replaced by one without its body", async () => {
      const body = new Uint8Array([1, 0, 255]);
      const reply = {
        id: "digest of who and which",
        requestDigest: "digest of what",
        status: 201,
        body,
        createdAt: 1_000,
        shownUntil: 2_000,
      };
      await store.change((to) => to.replies.put(reply));
      const found = await store.read((view) => view.replies.get(reply.id));
      expect({ ...found, body: [...(found?.body ?? [])] }).toEqual({ ...reply, body: [...body] });
      await store.change((to) => to.replies.put({ ...reply, body: undefined }));
      expect(await store.read((view) => view.replies.get(reply.id))).toEqual({
        ...reply,
        body: undefined,
      });
      expect(await store.read((view) => view.replies.get("unknown"))).toBeUndefined();
    });
  });
}

export function sessionOf(id: string, userId: string, expiresAt = 9_000): Session {
  return { id, userId, address: "192.0.2.1", createdAt: 1_000, lastSeenAt: 1_000, expiresAt };
}

function listUsers(
  store: ControlStore,
  filter: {
    readonly accountId?: string;
    readonly role?: "operator" | "auditor";
    readonly email?: string;
  },
): Promise<{ readonly items: readonly { readonly id: string }[] }> {
  return store.read((view) => view.users.list(filter, { limit: 10 }));
}
