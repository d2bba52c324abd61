import { beforeEach, describe, expect, test } from "bun:test";
import type { Key } from "../../src/domain/keys/key.ts";
import type { KeyFilter, SoldUnitsFilter } from "../../src/store/control-store.ts";
import type { ControlStore } from "../../src/store/repositories/control-store.ts";
import { accountOf, applicationOf, keyOf } from "./control-fixtures.ts";

/** What every control store must know of units of provisioned throughput. */
export function soldUnitsContract(create: () => ControlStore | Promise<ControlStore>): void {
  describe("sold units", () => {
    const now = 5_000;
    let store: ControlStore;
    beforeEach(async () => {
      store = await create();
      await store.change(async (to) => {
        for (const account of ["acct_a", "acct_b"]) {
          await to.accounts.insert(accountOf(account));
          await to.applications.insert(applicationOf(`of_${account}`, { accountId: account }));
        }
      });
    });

    function insert(id: string, values: Partial<Key>): Promise<void> {
      const { accountId = "acct_a" } = values;
      const application = applicationOf(`of_${accountId}`, { accountId });
      return store.change((to) => to.keys.insert(keyOf(id, application, values)));
    }

    async function sold(filter: Omit<SoldUnitsFilter, "now"> = {}): Promise<unknown> {
      const units = await store.read((view) => view.keys.soldUnits({ ...filter, now }));
      return Object.fromEntries(units);
    }

    async function listed(filter: KeyFilter, limit = 10): Promise<readonly string[]> {
      const page = await store.read((view) => view.keys.list(filter, { limit }));
      return page.items.map(({ id }) => id);
    }

    const main = { provisionedPool: "main" };

    test("are summed up by pool, of all accounts or of one", async () => {
      expect(await sold()).toEqual({});
      await insert("key_1", { ...main, provisionedUnits: 3 });
      await insert("key_2", { ...main, provisionedUnits: 4, accountId: "acct_b" });
      await insert("key_3", { provisionedPool: "other", provisionedUnits: 5 });
      await insert("key_4", {});
      expect(await sold()).toEqual({ main: 7, other: 5 });
      expect(await sold({ pool: "main" })).toEqual({ main: 7 });
      expect(await sold({ accountId: "acct_b" })).toEqual({ main: 4 });
      expect(await sold({ accountId: "acct_b", pool: "other" })).toEqual({});
    });

    test("of revoked and expired keys are free; those of disabled ones, also above, are not", async () => {
      await insert("key_1", { ...main, provisionedUnits: 1, revokedAt: 4_000 });
      await insert("key_2", { ...main, provisionedUnits: 2, expiresAt: now });
      await insert("key_3", { ...main, provisionedUnits: 4, expiresAt: now + 1 });
      await insert("key_4", { ...main, provisionedUnits: 8, disabledAt: 4_000 });
      await insert("key_5", { ...main, provisionedUnits: 16, accountId: "acct_b" });
      await store.change((to) => to.accounts.update({ ...accountOf("acct_b"), disabledAt: 4_000 }));
      expect(await sold()).toEqual({ main: 28 });
    });

    test("of no pool, as older versions sold them, are no pool's", async () => {
      await insert("key_1", { provisionedUnits: 9 });
      expect(await sold()).toEqual({});
    });

    test("that a change makes count within it, and are gone when it is undone", async () => {
      await insert("key_1", { ...main, provisionedUnits: 1 });
      const undone = store.change(async (to) => {
        const application = applicationOf("of_acct_a");
        await to.keys.insert(keyOf("key_2", application, { ...main, provisionedUnits: 6 }));
        expect(Object.fromEntries(await to.keys.soldUnits({ now }))).toEqual({ main: 7 });
        throw new Error("no");
      });
      expect(undone).rejects.toThrow("no");
      await undone.catch(() => undefined);
      expect(await sold()).toEqual({ main: 1 });
    });

    test("lead to the keys that hold them, with every other filter", async () => {
      await insert("key_1", { ...main, provisionedUnits: 1, createdAt: 1 });
      await insert("key_2", { ...main, provisionedUnits: 1, createdAt: 2, revokedAt: 3 });
      await insert("key_3", { ...main, provisionedUnits: 1, createdAt: 3, plan: "pro" });
      await insert("key_4", {
        ...main,
        provisionedUnits: 1,
        createdAt: 4,
        accountId: "acct_b",
      });
      await insert("key_5", { createdAt: 5, plan: "pro" });
      await insert("key_6", { provisionedPool: "other", provisionedUnits: 1, createdAt: 6 });
      expect(await listed(main)).toEqual(["key_4", "key_3", "key_2", "key_1"]);
      expect(await listed(main, 2)).toEqual(["key_4", "key_3"]);
      expect(await listed({ ...main, countsAt: now })).toEqual(["key_4", "key_3", "key_1"]);
      expect(await listed({ ...main, accountId: "acct_b" })).toEqual(["key_4"]);
      expect(await listed({ ...main, applicationId: "of_acct_a", plan: "pro" })).toEqual(["key_3"]);
      expect(await listed({ countsAt: now })).toEqual(["key_6", "key_4", "key_3", "key_1"]);
    });
  });
}
