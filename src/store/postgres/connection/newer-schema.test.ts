import { expect, test } from "bun:test";
import { sql } from "kysely";
import pg from "pg";
import { accountOf } from "../../../../test/contracts/control-fixtures.ts";
import { recordOf } from "../../../../test/contracts/usage-fixtures.ts";
import { describeWithPostgres } from "../../../../test/support/postgres-databases.ts";
import { SchemaTooNew } from "../../errors.ts";
import { SqlControlStore } from "../../repositories/control-store.ts";
import type { Queries } from "../../repositories/tables.ts";
import { PostgresUsageStore } from "../usage/usage-store.ts";
import type { PostgresConnection } from "./connection.ts";
import { migrations } from "./migrations.ts";

const known = migrations.length;

/** What a newer version does to the schema. */
async function upgrade(connection: PostgresConnection, compatibleSince: number): Promise<void> {
  await connection.change(async (queries: Queries) => {
    await sql`alter table accounts add column region text`.execute(queries);
    await sql`alter table usage add column region text not null default ''`.execute(queries);
    await sql`update schema_version
      set version = version + 1, compatible_since = ${compatibleSince}`.execute(queries);
  });
}

describeWithPostgres((databases) => {
  test("a schema that a newer version has added to is used on, also by a new start", async () => {
    const url = await databases.server.createDatabase();
    const running = await databases.connect({ url });
    const store = new SqlControlStore(running);
    await store.change((to) => to.accounts.insert(accountOf("acct_a")));
    await upgrade(running, known);
    const starting = await databases.connect({ url });
    await starting.open();
    for (const [index, connection] of [running, starting].entries()) {
      const control = new SqlControlStore(connection);
      const account = await control.read((view) => view.accounts.get("acct_a"));
      if (account === undefined) throw new Error("the account is gone");
      await control.change((to) => to.accounts.update({ ...account, maxKeys: index }));
      const usage = new PostgresUsageStore(connection.inLane("usage"));
      await usage.insert([recordOf(`req_${index}`)]);
    }
    const { rows } = await starting.read((queries) =>
      sql<{ version: number; calls: number }>`
        select version, (select count(*) from usage) as calls from schema_version`.execute(queries),
    );
    expect(rows).toEqual([{ version: known + 1, calls: 2 }]);
  });

  test("a schema that older versions cannot use is refused with what to do", async () => {
    const url = await databases.server.createDatabase();
    await upgrade(await databases.connect({ url }), known + 1);
    const older = await databases.connect({ url });
    const refusal = await older.open().catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(SchemaTooNew);
    expect(String(refusal)).toContain(`its schema is ${known + 1}, which needs programs of schema`);
    expect(String(refusal)).toContain("install a newer version");
  });

  test("a database of the first schema gets the steps after it", async () => {
    const url = await databases.server.createDatabase();
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(`${migrations[0]?.sql}; UPDATE schema_version SET version = 1`);
    await client.end();
    const next = await databases.connect({ url });
    const { rows } = await next.read((queries) =>
      sql`select version, compatible_since from schema_version`.execute(queries),
    );
    expect(rows).toEqual([{ version: known, compatibleSince: 2 }]);
  });
});
