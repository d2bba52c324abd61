import { expect, test } from "bun:test";
import {
  accountOf,
  applicationOf,
  auditEntryOf,
  keyOf,
  secretOf,
} from "../../../test/contracts/control-fixtures.ts";
import { recordOf } from "../../../test/contracts/usage-fixtures.ts";
import { ControlStore } from "../repositories/control-store.ts";
import { SqlKeyStore } from "../repositories/key-store.ts";
import { SqliteConnection } from "./connection/connection.ts";
import { SqlUsageStore } from "../repositories/usage/usage-store.ts";
import { isFaultOfData } from "./connection/sqlite-trouble.ts";
import { testPeppers } from "../../../test/support/test-peppers.ts";

test("a repeated statement is prepared once, with any other statements in between", async () => {
  await using connection = new SqliteConnection({ path: ":memory:", busyTimeoutMs: 10 });
  const control = new ControlStore(connection, testPeppers());
  const ring = new SqlKeyStore(connection, { now: () => 1 });
  const usage = new SqlUsageStore(connection, {
    isFaultOfData,
    clock: Date,
    peppers: testPeppers(),
  });
  const application = applicationOf("app_a", { accountId: "acct_a" });
  await control.change(async (to) => {
    await to.accounts.insert(accountOf("acct_a"));
    await to.applications.insert(application);
  });
  const work = async (round: number): Promise<void> => {
    await control.change(async (to) => {
      const key = keyOf(`key_${round}`, application);
      await to.keys.insert(key);
      await to.secrets.insert(secretOf(`${round}`, key.id));
      await to.audit.append(auditEntryOf(round));
    });
    await ring.loadKeys(0, 100);
    await ring.recordLastUse(new Map([["1", round]]));
    await usage.insert([recordOf(`req_${round}`)]);
  };
  const statements: Set<unknown> = new Set();
  let texts = 0;
  const database = await connection.use((opened) => opened);
  const query = database.query.bind(database);
  database.query = (sql: string) => {
    texts += 1;
    statements.add(query(sql));
    return query(sql);
  };
  await work(1);
  const inOneRound = texts;
  for (const accountId of ["acct_a", undefined]) {
    for (const filter of [{}, { plan: "p" }, { environment: "e" }, { applicationId: "app_a" }]) {
      const page = { limit: 5 };
      await control.read((view) => view.keys.list({ accountId, ...filter }, page));
      await control.read((view) => view.audit.list({ accountId, action: filter.plan }, page));
    }
  }
  const known = statements.size;
  await work(2);
  expect(inOneRound).toBeGreaterThan(20);
  expect(statements.size).toBe(known);
});
