import { beforeEach, describe, expect, test } from "bun:test";
import type { ControlStore } from "../../src/store/repositories/control-store.ts";
import { accountOf, applicationOf, keyOf, secretOf, tokenOf, userOf } from "./control-fixtures.ts";

/** What every control store must know of what ends soon. */
export function dueContract(create: () => ControlStore | Promise<ControlStore>): void {
  describe("what is due", () => {
    const soon = { now: 1_000, before: 2_000, limit: 10 };
    let store: ControlStore;
    beforeEach(async () => {
      store = await create();
      await store.change(async (to) => {
        for (const account of ["acct_a", "acct_b"]) {
          await to.accounts.insert(accountOf(account));
          const application = applicationOf(`of_${account}`, { accountId: account });
          await to.applications.insert(application);
          const expiry = { late: 1_900, next: 1_100, over: 1_000, never: undefined, far: 2_000 };
          for (const [name, expiresAt] of Object.entries(expiry)) {
            const id = `${account}_${name}`;
            await to.keys.insert(keyOf(id, application, { expiresAt }));
            await to.secrets.insert(secretOf(`old ${id}`, id, { expiresAt, lastUsedAt: 7 }));
          }
          const gone = { expiresAt: 1_500, revokedAt: 500 };
          await to.keys.insert(keyOf(`${account}_gone`, application, gone));
          // Rotated: the newest secret has no end.
          await to.secrets.insert(secretOf(`new ${account}`, `${account}_late`));
          await to.users.insert(userOf(`user_${account}`, { accountId: account }));
          await to.tokens.insert(
            tokenOf(`due_${account}`, `user_${account}`, { expiresAt: 1_500 }),
          );
          await to.tokens.insert(
            tokenOf(`far_${account}`, `user_${account}`, { expiresAt: 9_000 }),
          );
        }
      });
    });

    test("keys are told by their end, those of one account or of all", async () => {
      const [all, own] = await store.read(async ({ due }) => [
        await due.keysDue(soon),
        await due.keysDue({ ...soon, accountId: "acct_b" }),
      ]);
      expect(all.map(({ at }) => at)).toEqual([1_100, 1_100, 1_900, 1_900]);
      expect(own.map(({ id, at }) => [id, at])).toEqual([
        ["acct_b_next", 1_100],
        ["acct_b_late", 1_900],
      ]);
      expect((await store.read(({ due }) => due.keysDue({ ...soon, limit: 1 }))).length).toBe(1);
    });

    test("tokens are told, of one user or of all", async () => {
      const [all, own] = await store.read(async ({ due }) => [
        await due.tokensDue(soon),
        await due.tokensDue(soon, "user_acct_a"),
      ]);
      expect(all.map(({ id }) => id).toSorted()).toEqual(["due_acct_a", "due_acct_b"]);
      expect(own).toMatchObject([{ id: "due_acct_a", at: 1_500 }]);
    });

    test("a rotation is open while a newer secret works beside the one that ends", async () => {
      const [all, own] = await store.read(async ({ due }) => [
        await due.rotationsDue(soon),
        await due.rotationsDue({ ...soon, accountId: "acct_a" }),
      ]);
      expect(all).toHaveLength(2);
      expect(own).toMatchObject([{ id: "acct_a_late", at: 1_900, lastUsedAt: 7 }]);
    });
  });
}
