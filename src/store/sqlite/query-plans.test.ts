import { beforeAll, describe, expect, test } from "bun:test";
import {
  accountOf,
  applicationOf,
  keyOf,
  secretOf,
} from "../../../test/contracts/control-fixtures.ts";
import { SqliteConnection } from "./connection/connection.ts";
import { SqliteControlStore } from "./control-store.ts";
import { encodeCursor, encodeSequence } from "./cursor.ts";
import { changesSql, removalsSql, secretsSql } from "./key-store.ts";
import { pruneSteps } from "./prune-control.ts";
import {
  type Condition,
  listStatement,
  type SqlValue,
  type TableEntity,
  type TableSpec,
} from "./table.ts";
import { accountTable } from "./tables/account-table.ts";
import { applicationTable } from "./tables/application-table.ts";
import { auditListStatement } from "./tables/audit-table.ts";
import { countLiveSql, keyTable, soldUnitsStatement } from "./tables/key-table.ts";
import { tokenTable } from "./tables/token-table.ts";
import { userTable } from "./tables/user-table.ts";

/** Lists must cost what their page costs, however many rows there are. */
describe("plans of queries", () => {
  const connection = new SqliteConnection({ path: ":memory:", busyTimeoutMs: 10 });

  beforeAll(async () => {
    await fill(new SqliteControlStore(connection));
  });

  function planOf({ sql, values }: Condition): Promise<readonly string[]> {
    return connection.use((database) =>
      database
        .query<{ detail: string }, SqlValue[]>(`EXPLAIN QUERY PLAN ${sql}`)
        .all(...values)
        .map(({ detail }) => detail),
    );
  }

  async function expectIndexed(statement: Condition): Promise<void> {
    const plan = await planOf(statement);
    const scans = plan.filter((step) => !/ USING (COVERING )?I|^LIST SUBQUERY/.test(step));
    expect(scans).toEqual([]);
  }

  const page = { limit: 50, after: encodeCursor({ at: 5_000, id: "x" }) };
  const lists = <Entity extends TableEntity, Row, Filter>(
    spec: TableSpec<Entity, Row, Filter>,
    filters: readonly Filter[],
  ): readonly Condition[] => filters.map((filter) => listStatement(spec, filter, page));

  test("every list of entities follows an index in its order", async () => {
    const isActive = { value: true, now: 1 };
    const statements = [
      ...lists(accountTable, [{}]),
      ...lists(applicationTable, [{}, { environment: "e" }]),
      ...lists(keyTable, [
        {},
        { isActive },
        { accountId: "a", isActive },
        { accountId: "a", environment: "e" },
        { applicationId: "a", plan: "p" },
        { applicationId: "a", accountId: "a" },
        { environment: "e", plan: "p" },
        { provisionedPool: "m", accountId: "a", plan: "p", countsAt: 1 },
      ]),
      ...lists(userTable, [{}, { role: "auditor" }, { accountId: "a" }]),
      ...lists(tokenTable, [{}, { userId: "u" }]),
    ];
    for (const statement of statements) await expectIndexed(statement);
  });

  test("lists of one account read its rows alone", async () => {
    const keys = await planOf(listStatement(keyTable, { accountId: "a" }, page));
    expect(keys[0]).toContain("keys_by_account (account_id=? AND");
    const ofApplication = { accountId: "a", applicationId: "b" };
    const narrower = await planOf(listStatement(keyTable, ofApplication, page));
    expect(narrower[0]).toContain("keys_by_application (application_id=? AND");
    const users = await planOf(listStatement(userTable, { accountId: "a" }, page));
    expect(users[0]).toContain("users_by_account (account_id=? AND");
    const applications = await planOf(listStatement(applicationTable, { accountId: "a" }, page));
    expect(applications[0]).toContain("(account_id=?");
  });

  test("what is rare is found by an index of it", async () => {
    const counts = await planOf({ sql: countLiveSql, values: ["a", 7] });
    expect(counts.join("\n")).toContain("keys_live_by_account (account_id=?)");
    const plan = await planOf(listStatement(keyTable, { plan: "p" }, page));
    expect(plan[0]).toContain("keys_by_plan (plan=? AND");
    const ofPool = { provisionedPool: "m", accountId: "a", applicationId: "b", countsAt: 1 };
    const pool = await planOf(listStatement(keyTable, ofPool, page));
    expect(pool[0]).toContain("keys_by_pool (provisioned_pool=? AND");
    for (const filter of [{ now: 1 }, { pool: "m", now: 1 }, { accountId: "a", now: 1 }]) {
      const sums = await planOf(soldUnitsStatement(filter));
      expect(sums).toEqual([expect.stringContaining("USING INDEX keys_by_pool")]);
    }
    const environment = { environment: "e" };
    const applications = await planOf(listStatement(applicationTable, environment, page));
    expect(applications[0]).toContain("applications_by_environment (environment=? AND");
    const users = await planOf(listStatement(userTable, { role: "auditor" }, page));
    expect(users[0]).toContain("users_by_role (role=? AND");
  });

  test("lists of the audit follow its numbers, within what the filter names", async () => {
    const after = encodeSequence(1_000);
    const filters = [
      {},
      { accountId: "a" },
      { actorId: "a" },
      { action: "a" },
      { subjectId: "a" },
      { since: 1, until: 2 },
      { accountId: "a", action: "b", since: 1 },
    ];
    for (const filter of filters) {
      await expectIndexed(auditListStatement(filter, { limit: 50, after }));
    }
    const plan = await planOf(auditListStatement({ accountId: "a" }, { limit: 50, after }));
    expect(plan[0]).toContain("audit_by_account (account_id=? AND sequence<?)");
  });

  test("changes of keys are found by their epoch, not among all keys", async () => {
    const changes = await planOf({ sql: changesSql, values: [1, 500] });
    expect(changes[0]).toContain("keys_by_epoch (changed_epoch>?)");
    await expectIndexed({ sql: changesSql, values: [1, 500] });
    await expectIndexed({ sql: removalsSql, values: [1, 500] });
    const secrets = await planOf({ sql: secretsSql, values: ["k", 1] });
    expect(secrets[0]).toContain("secrets_by_key (key_id=?)");
    await expectIndexed({ sql: secretsSql, values: ["k", 1] });
  });

  test("what is too old is found by its age", async () => {
    for (const { sql } of pruneSteps) await expectIndexed({ sql, values: [1, 100] });
  });
});

async function fill(store: SqliteControlStore): Promise<void> {
  await store.change(async (to) => {
    for (const account of ["acct_a", "acct_b", "acct_c"]) {
      await to.accounts.insert(accountOf(account));
      for (let place = 0; place < 5; place += 1) {
        const application = applicationOf(`app_${account}_${place}`, { accountId: account });
        await to.applications.insert(application);
        for (let number = 0; number < 20; number += 1) {
          const id = `key_${account}_${place}_${number}`;
          await to.keys.insert(keyOf(id, application, { createdAt: number }));
          await to.secrets.insert(secretOf(`of ${id}`, id));
        }
      }
    }
  });
}
