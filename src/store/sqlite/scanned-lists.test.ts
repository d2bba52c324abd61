import { expect, test } from "bun:test";
import {
  accountOf,
  applicationOf,
  keyOf,
  secretOf,
} from "../../../test/contracts/control-fixtures.ts";
import { plansOf } from "../../../test/support/query-plans.ts";
import type { KeyFilter } from "../control-store.ts";
import { scannedRows } from "../repositories/entity-table.ts";
import { SqliteConnection } from "./connection/connection.ts";
import { ControlStore } from "../repositories/control-store.ts";
import { testPeppers } from "../../../test/support/test-peppers.ts";

/** More keys than a page scans; only the three oldest are of staging and of another plan. */
async function fill(connection: SqliteConnection): Promise<ControlStore> {
  const store = new ControlStore(connection, testPeppers());
  await store.change(async (to) => {
    await to.accounts.insert(accountOf("acct_a"));
    const many = applicationOf("app_many", { accountId: "acct_a", name: "many" });
    const few = applicationOf("app_few", { accountId: "acct_a", environment: "rare" });
    for (const application of [many, few]) await to.applications.insert(application);
    for (let at = 1; at <= scannedRows + 100; at += 1) {
      const isRare = at <= 3;
      const key = keyOf(`key_${at}`, isRare ? few : many, { createdAt: at });
      await to.keys.insert(isRare ? { ...key, plan: "rare" } : key);
      if (at % 1_000 === 7) await to.secrets.insert(secretOf(`of_${at}`, key.id));
    }
  });
  return store;
}

test("a list of rare keys scans a bounded number a page, and misses and repeats none", async () => {
  await using connection = new SqliteConnection({ path: ":memory:", busyTimeoutMs: 10 });
  const store = await fill(connection);
  const pagesOf = async (filter: KeyFilter): Promise<readonly (readonly string[])[]> => {
    const pages: (readonly string[])[] = [];
    let after: string | undefined;
    do {
      const page = await store.read((view) => view.keys.list(filter, { limit: 2, after }));
      pages.push(page.items.map(({ id }) => id));
      after = page.next;
    } while (after !== undefined);
    return pages;
  };
  const oldest = [["key_3", "key_2"], ["key_1"]];
  expect(await pagesOf({ environment: "rare" })).toEqual([[], ...oldest]);
  expect(await pagesOf({ accountId: "acct_a", plan: "rare" })).toEqual([[], ...oldest]);
  expect(await pagesOf({ plan: "rare" })).toEqual(oldest);
  expect(await pagesOf({ environment: "rare", plan: "rare" })).toEqual(oldest);
  const active = await pagesOf({ isActive: { value: true, now: 10 } });
  expect(active.flat()).toEqual([
    "key_5007",
    "key_4007",
    "key_3007",
    "key_2007",
    "key_1007",
    "key_7",
  ]);
});

test("the bounds of a page are found in an index alone", async () => {
  await using connection = new SqliteConnection({ path: ":memory:", busyTimeoutMs: 10 });
  const store = new ControlStore(connection, testPeppers());
  const plansOfList = (filter: KeyFilter) =>
    plansOf(connection, () => store.read((view) => view.keys.list(filter, { limit: 5 })));
  const isActive = { value: true, now: 1 };
  const filters: readonly KeyFilter[] = [
    { isActive },
    { environment: "e" },
    { environment: "e", plan: "p" },
    { accountId: "a", isActive },
    { applicationId: "a", plan: "p" },
  ];
  for (const filter of filters) {
    const [scan, ...others] = await plansOfList(filter);
    expect(others).toHaveLength(1);
    expect(scan?.steps).toEqual([expect.stringContaining("COVERING INDEX")]);
  }
  expect(await plansOfList({ accountId: "a" })).toHaveLength(1);
});
