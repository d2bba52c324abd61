import { beforeEach, describe, expect, test } from "bun:test";
import type { Page, PageRequest } from "../../src/store/control-store.ts";
import type {
  ControlStore,
  ControlTransaction,
} from "../../src/store/repositories/control-store.ts";
import {
  AlreadyExists,
  InvalidCursor,
  RevisionConflict,
  StillInUse,
} from "../../src/store/errors.ts";
import { accessContract } from "./access-contract.ts";
import { auditContract } from "./audit-contract.ts";
import {
  accountOf,
  applicationOf,
  insertKey,
  keyOf,
  secretOf,
  userOf,
} from "./control-fixtures.ts";
import { controlRetentionContract } from "./control-retention-contract.ts";
import { dueContract } from "./due-contract.ts";
import { soldUnitsContract } from "./sold-units-contract.ts";

/** What every control store must do. */
export function controlStoreContract(
  name: string,
  create: () => ControlStore | Promise<ControlStore>,
): void {
  describe(`control store contract: ${name}`, () => {
    transactionContract(create);
    entityContract(create);
    listContract(create);
    secretContract(create);
    accessContract(create);
    auditContract(create);
    controlRetentionContract(create);
    soldUnitsContract(create);
    dueContract(create);
    nameContract(create);
  });
}

function transactionContract(create: () => ControlStore | Promise<ControlStore>): void {
  describe("transactions", () => {
    let store: ControlStore;
    beforeEach(async () => {
      store = await create();
    });

    test("what throws leaves nothing, wherever it got to", async () => {
      const failing = store.change(async (transaction) => {
        await transaction.accounts.insert(accountOf("acct_a"));
        await transaction.applications.insert(applicationOf("app_a"));
        throw new Error("changed my mind");
      });
      expect(failing).rejects.toThrow("changed my mind");
      await failing.catch(() => undefined);
      expect(await store.read((view) => view.accounts.get("acct_a"))).toBeUndefined();
      expect(await store.read((view) => view.applications.get("app_a"))).toBeUndefined();
    });

    test("what was refused inside undoes the whole change, even if it is caught", async () => {
      const failing = store.change(async (transaction) => {
        await transaction.accounts.insert(accountOf("acct_a"));
        await transaction.accounts.insert(accountOf("acct_a")).catch(() => undefined);
      });
      expect(failing).rejects.toThrow();
      await failing.catch(() => undefined);
      const { items } = await store.read((view) => view.accounts.list({}, { limit: 10 }));
      expect(items).toEqual([]);
    });

    test("changes run one after another, however long each takes", async () => {
      await store.change((transaction) =>
        transaction.accounts.insert(accountOf("acct_a", { maxKeys: 0 })),
      );
      const raise = (): Promise<unknown> =>
        store.change(async (transaction) => {
          const account = await transaction.accounts.get("acct_a");
          if (account === undefined) throw new Error("the account is gone");
          await new Promise((resolve) => setImmediate(resolve));
          await transaction.accounts.update({ ...account, maxKeys: account.maxKeys + 1 });
        });
      await Promise.all(Array.from({ length: 20 }, raise));
      const account = await store.read((view) => view.accounts.get("acct_a"));
      expect(account?.maxKeys).toBe(20);
      expect(account?.revision).toBe(21);
    });

    test("a reading that waits for a change sees all of it", async () => {
      const changing = store.change(async (transaction) => {
        await transaction.accounts.insert(accountOf("acct_a"));
        await new Promise((resolve) => setImmediate(resolve));
        await transaction.accounts.insert(accountOf("acct_b"));
      });
      const reading = store.read((view) => view.accounts.list({}, { limit: 10 }));
      await changing;
      expect((await reading).items).toHaveLength(2);
    });

    test("nothing can be done with a transaction that has ended", async () => {
      const leaked = await store.change((transaction) => Promise.resolve({ transaction }));
      const late = leaked.transaction.accounts.insert(accountOf("acct_a"));
      expect(late).rejects.toThrow("ended");
      await late.catch(() => undefined);
      expect(await store.read((view) => view.accounts.get("acct_a"))).toBeUndefined();
    });
  });
}

function entityContract(create: () => ControlStore | Promise<ControlStore>): void {
  describe("entities", () => {
    let store: ControlStore;
    beforeEach(async () => {
      store = await create();
    });

    test("accounts, applications and keys come back as they were given", async () => {
      const account = accountOf("acct_a", {
        note: "pays\nlate",
        plans: ["pro", "with, comma"],
        disabledAt: 7,
      });
      const application = applicationOf("app_a", {
        note: "n",
        disabledAt: 8,
        disabledBy: "operator",
      });
      const key = keyOf("key_a", application, {
        limits: { requestsPerMinute: 1, tokensPerMinute: 2 },
        allowedModels: [],
        allowedNetworks: ["10.0.0.0/8"],
        expiresAt: 9,
        disabledAt: 10,
        disabledBy: "account_holder",
        revokedAt: 11,
      });
      await store.change(async (transaction) => {
        await transaction.accounts.insert(account);
        await transaction.applications.insert(application);
        await transaction.keys.insert(key);
      });
      await store.read(async (view) => {
        expect(await view.accounts.get("acct_a")).toEqual(account);
        expect(await view.applications.get("app_a")).toEqual(application);
        expect(await view.keys.get("key_a")).toEqual(key);
        expect(await view.keys.get("key_b")).toBeUndefined();
      });
    });

    test("an update counts the revision up and returns what is stored", async () => {
      const { key } = await insertKey(store, {
        account: "acct_a",
        application: "app_a",
        key: "key_a",
      });
      const changed = {
        ...key,
        plan: "pro",
        note: "x",
        provisionedUnits: 2,
        provisionedPool: "main",
      };
      const stored = await store.change((transaction) => transaction.keys.update(changed));
      expect(stored).toEqual({ ...changed, revision: 2 });
      expect(await store.read((view) => view.keys.get("key_a"))).toEqual(stored);
    });

    test("an update from an old revision, or of nothing, is a conflict and changes nothing", async () => {
      const account = accountOf("acct_a");
      await store.change((transaction) => transaction.accounts.insert(account));
      await store.change((transaction) => transaction.accounts.update({ ...account, note: "1" }));
      const stale = store.change((transaction) =>
        transaction.accounts.update({ ...account, note: "2" }),
      );
      expect(stale).rejects.toBeInstanceOf(RevisionConflict);
      const missing = store.change((transaction) =>
        transaction.accounts.update(accountOf("acct_b")),
      );
      expect(missing).rejects.toBeInstanceOf(RevisionConflict);
      expect(await store.read((view) => view.accounts.get("acct_a"))).toEqual({
        ...account,
        note: "1",
        revision: 2,
      });
    });

    test("taken ids and names are refused, by insert and by update", async () => {
      await insertKey(store, { account: "acct_a", application: "app_a", key: "key_a" });
      await store.change((transaction) => transaction.accounts.insert(accountOf("acct_b")));
      const { name } = accountOf("acct_a");
      const { name: applicationName } = applicationOf("app_a");
      const refused: readonly ((to: ControlTransaction) => Promise<unknown>)[] = [
        (to) => to.accounts.insert(accountOf("acct_a", { name: "x" })),
        (to) => to.accounts.insert(accountOf("acct_c", { name })),
        (to) => to.accounts.update(accountOf("acct_b", { name })),
        (to) => to.applications.insert(applicationOf("app_b", { name: applicationName })),
        (to) => to.keys.insert(keyOf("key_a", applicationOf("app_a"))),
        (to) => to.secrets.insert(secretOf("of_key_a", "key_a")),
      ];
      for (const attempt of refused) {
        expect(store.change(attempt)).rejects.toBeInstanceOf(AlreadyExists);
      }
      await store.change((to) =>
        to.applications.insert(
          applicationOf("app_c", { name: applicationName, environment: "staging" }),
        ),
      );
    });

    test("what others refer to cannot be removed; what nobody refers to can, once", async () => {
      await insertKey(store, { account: "acct_a", application: "app_a", key: "key_a" });
      const user = userOf("user_a", { role: "account_holder", accountId: "acct_a" });
      await store.change((to) => to.users.insert(user));
      expect(store.change((to) => to.applications.delete("app_a"))).rejects.toBeInstanceOf(
        StillInUse,
      );
      expect(await store.change((to) => to.keys.delete("key_a"))).toBe(true);
      expect(await store.change((to) => to.keys.delete("key_a"))).toBe(false);
      expect(await store.read((view) => view.secrets.get("of_key_a"))).toBeUndefined();
      expect(await store.change((to) => to.applications.delete("app_a"))).toBe(true);
      expect(store.change((to) => to.accounts.delete("acct_a"))).rejects.toBeInstanceOf(StillInUse);
      await store.change((to) => to.users.delete("user_a"));
      expect(await store.change((to) => to.accounts.delete("acct_a"))).toBe(true);
    });

    test("a key that does not fit its application is not stored", async () => {
      const { application } = await insertKey(store, {
        account: "acct_a",
        application: "app_a",
        key: "key_a",
      });
      await store.change((to) => to.accounts.insert(accountOf("acct_b")));
      const foreign = keyOf("key_b", application, { accountId: "acct_b" });
      expect(store.change((to) => to.keys.insert(foreign))).rejects.toThrow("does not fit");
      const elsewhere = keyOf("key_c", application, { environment: "staging" });
      expect(store.change((to) => to.keys.insert(elsewhere))).rejects.toThrow("does not fit");
      const orphan = keyOf("key_d", applicationOf("app_none"));
      expect(store.change((to) => to.keys.insert(orphan))).rejects.toThrow("does not fit");
    });
  });
}

function nameContract(create: () => ControlStore | Promise<ControlStore>): void {
  test("names are found by id; a key without one has that of its application", async () => {
    const store = await create();
    const application = applicationOf("app_a", { accountId: "acct_a", name: "search" });
    await store.change(async (to) => {
      await to.accounts.insert(accountOf("acct_a", { name: "Shop" }));
      await to.applications.insert(application);
      await to.keys.insert(keyOf("key_a", application, { name: "nightly" }));
      await to.keys.insert(keyOf("key_b", application, { name: "" }));
    });
    const ids = ["acct_a", "app_a", "key_a", "key_b", "gone"];
    const read = async (kind: Parameters<typeof store.names>[0]) =>
      Object.fromEntries(await store.names(kind, ids));
    expect(await read("account")).toEqual({ acct_a: "Shop" });
    expect(await read("application")).toEqual({ app_a: "search" });
    expect(await read("key")).toEqual({ key_a: "nightly", key_b: "search" });
  });
}

function listContract(create: () => ControlStore | Promise<ControlStore>): void {
  describe("lists", () => {
    let store: ControlStore;
    beforeEach(async () => {
      store = await create();
    });

    async function idsOf<Item extends { readonly id: string }>(
      list: (page: PageRequest) => Promise<Page<Item>>,
      limit: number,
    ): Promise<readonly string[]> {
      const ids: string[] = [];
      let after: string | undefined;
      do {
        const page = await list({ limit, after });
        expect(page.items.length).toBeLessThanOrEqual(limit);
        expect(page.next === undefined || page.items.length === limit).toBe(true);
        ids.push(...page.items.map(({ id }) => id));
        expect(ids.length).toBeLessThan(100);
        after = page.next;
      } while (after !== undefined);
      return ids;
    }

    test("pages go from the newest to the oldest, whatever the ids and ties, once each", async () => {
      const times = [5, 1, 3, 3, 3, 2, 4];
      await store.change(async (transaction) => {
        for (const [place, createdAt] of times.entries()) {
          await transaction.accounts.insert(accountOf(`acct_${place}`, { createdAt }));
        }
      });
      const all = ["acct_0", "acct_6", "acct_4", "acct_3", "acct_2", "acct_5", "acct_1"];
      for (const limit of [1, 2, 3, 7, 50]) {
        const ids = await idsOf(
          (page) => store.read((view) => view.accounts.list({}, page)),
          limit,
        );
        expect(ids).toEqual(all);
      }
    });

    test("what is added while pages are read comes not twice and shifts nothing", async () => {
      await store.change(async (transaction) => {
        for (const id of ["a", "b", "c"]) await transaction.accounts.insert(accountOf(id));
      });
      const first = await store.read((view) => view.accounts.list({}, { limit: 2 }));
      await store.change((to) => to.accounts.insert(accountOf("new", { createdAt: 9_000 })));
      const second = await store.read((view) =>
        view.accounts.list({}, { limit: 2, after: first.next }),
      );
      const ids = [...first.items, ...second.items].map(({ id }) => id);
      expect(ids).toEqual(["c", "b", "a"]);
    });

    test("a cursor that no list gave is refused", async () => {
      const encoded = (value: unknown): string =>
        Buffer.from(JSON.stringify(value)).toString("base64url");
      const cursors = ["", "!", "abc", encoded([1]), encoded(["1", "a"]), encoded({ at: 1 })];
      for (const after of [...cursors, encoded([1, 2]), encoded([1.5, "a"]), encoded(null)]) {
        const listing = store.read((view) => view.accounts.list({}, { limit: 1, after }));
        expect(listing).rejects.toBeInstanceOf(InvalidCursor);
        await listing.catch(() => undefined);
      }
    });

    test("every filter of every list leaves out what does not fit, page by page", async () => {
      await fillForFilters(store);
      const keys = (filter: Parameters<typeof listKeys>[1]): Promise<readonly string[]> =>
        idsOf((page) => listKeys(store, filter, page), 1);
      expect(await keys({ accountId: "acct_b" })).toEqual(["key_b"]);
      expect(await keys({ applicationId: "app_a" })).toEqual(["key_off", "key_pro", "key_a"]);
      expect(await keys({ applicationId: "app_a", accountId: "acct_b" })).toEqual([]);
      expect(await keys({ environment: "staging" })).toEqual(["key_s"]);
      expect(await keys({ plan: "pro", accountId: "acct_a" })).toEqual(["key_pro"]);
      const active = { value: true, now: 500 };
      expect(await keys({ isActive: active })).toEqual(["key_s", "key_pro", "key_b", "key_a"]);
      expect(await keys({ isActive: { ...active, value: false } })).toEqual(["key_off"]);
      const later = { value: false, now: 600 };
      expect(await keys({ isActive: later })).toEqual(["key_off", "key_pro"]);
      expect(await keys({ isActive: active, applicationId: "app_a" })).toEqual([
        "key_pro",
        "key_a",
      ]);

      const applications = await idsOf(
        (page) =>
          store.read((view) =>
            view.applications.list({ accountId: "acct_a", environment: "production" }, page),
          ),
        1,
      );
      expect(applications).toEqual(["app_a"]);
      const named = await store.read((view) =>
        view.accounts.list({ name: accountOf("acct_b").name }, { limit: 5 }),
      );
      expect(named.items.map(({ id }) => id)).toEqual(["acct_b"]);
    });

    test("a key is active as long as all it belongs to is, and a secret of it lives", async () => {
      const { application } = await insertKey(store, {
        account: "acct_a",
        application: "app_a",
        key: "key_a",
      });
      const now = 10_000;
      await store.change(async (to) => {
        await to.keys.insert(keyOf("key_bare", application));
        // Of two that live, the key is still one.
        await to.secrets.insert(secretOf("second", "key_a", { expiresAt: now + 1 }));
      });
      expect(await keysByActivity(store, now)).toEqual([["key_a"], ["key_bare"]]);
      const whole = [[], ["key_bare", "key_a"]];
      const disabled = await store.change((to) =>
        to.applications.update({ ...application, disabledAt: 5 }),
      );
      expect(await keysByActivity(store, now)).toEqual(whole);
      await store.change((to) => to.applications.update({ ...disabled, disabledAt: undefined }));
      const account = await store.change((to) =>
        to.accounts.update({ ...accountOf("acct_a"), disabledAt: 5 }),
      );
      expect(await keysByActivity(store, now)).toEqual(whole);
      await store.change((to) => to.accounts.update({ ...account, disabledAt: undefined }));
      await store.change((to) => to.secrets.expire("of_key_a", now + 1));
      expect(await keysByActivity(store, now)).toEqual([["key_a"], ["key_bare"]]);
      expect(await keysByActivity(store, now + 1)).toEqual(whole);
    });
  });
}

async function keysByActivity(store: ControlStore, now: number): Promise<readonly string[][]> {
  const ids: string[][] = [];
  for (const value of [true, false]) {
    const { items } = await listKeys(store, { isActive: { value, now } }, { limit: 10 });
    ids.push(items.map(({ id }) => id));
  }
  return ids;
}

function listKeys(
  store: ControlStore,
  filter: {
    readonly accountId?: string;
    readonly applicationId?: string;
    readonly environment?: string;
    readonly plan?: string;
    readonly isActive?: { readonly value: boolean; readonly now: number };
  },
  page: PageRequest,
): Promise<Page<{ readonly id: string }>> {
  return store.read((view) => view.keys.list(filter, page));
}

async function fillForFilters(store: ControlStore): Promise<void> {
  const { application } = await insertKey(store, {
    account: "acct_a",
    application: "app_a",
    key: "key_a",
  });
  await insertKey(store, { account: "acct_b", application: "app_b", key: "key_b" });
  const staging = applicationOf("app_s", { environment: "staging" });
  await store.change(async (to) => {
    await to.applications.insert(staging);
    await to.keys.insert(keyOf("key_s", staging));
    await to.secrets.insert(secretOf("of_key_s", "key_s"));
    // `key_a` and `key_pro` are of the same time: then the id decides.
    await to.keys.insert(keyOf("key_pro", application, { plan: "pro", expiresAt: 600 }));
    await to.secrets.insert(secretOf("of_key_pro", "key_pro"));
    const off = { revokedAt: 1, createdAt: 2_000 };
    await to.keys.insert(keyOf("key_off", application, off));
  });
}

function secretContract(create: () => ControlStore | Promise<ControlStore>): void {
  describe("secrets", () => {
    let store: ControlStore;
    beforeEach(async () => {
      store = await create();
      await insertKey(store, { account: "acct_a", application: "app_a", key: "key_a" });
    });

    test("secrets of a key come newest first, those that ended included", async () => {
      await store.change(async (to) => {
        await to.secrets.insert(secretOf("newer", "key_a", { createdAt: 3_000 }));
        await to.secrets.insert(secretOf("older", "key_a", { createdAt: 2_000, expiresAt: 2_500 }));
      });
      const secrets = await store.read((view) => view.secrets.ofKey("key_a"));
      expect(secrets.map(({ publicId }) => publicId)).toEqual(["newer", "older", "of_key_a"]);
      expect(await store.read((view) => view.secrets.ofKey("key_b"))).toEqual([]);
    });

    test("at most 100 secrets of a key are read", async () => {
      await store.change(async (to) => {
        for (let place = 0; place < 101; place += 1) {
          await to.secrets.insert(secretOf(`secret_${place}`, "key_a"));
        }
      });
      expect(await store.read((view) => view.secrets.ofKey("key_a"))).toHaveLength(100);
    });

    test("the end of a secret can be set and moved; of an unknown one it cannot", async () => {
      await store.change((to) => to.secrets.expire("of_key_a", 5_000));
      await store.change((to) => to.secrets.expire("of_key_a", 4_000));
      const secret = await store.read((view) => view.secrets.get("of_key_a"));
      expect(secret?.expiresAt).toBe(4_000);
      expect(store.change((to) => to.secrets.expire("unknown", 1))).rejects.toThrow("unknown");
    });
  });
}
