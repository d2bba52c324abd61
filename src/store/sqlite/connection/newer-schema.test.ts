import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { accountOf } from "../../../../test/contracts/control-fixtures.ts";
import { SchemaTooNew } from "../../errors.ts";
import { SqlControlStore } from "../../repositories/control-store.ts";
import { SqliteConnection } from "./connection.ts";
import { migrations } from "./migrations.ts";
import { readSchema, writeSchema } from "./schema-row.ts";

const known = migrations.length;

/** A database that a newer version has added to. */
async function makeNewer(path: string, compatibleSince: number): Promise<void> {
  await using current = new SqliteConnection({ path, busyTimeoutMs: 10 });
  await current.use((database) => {
    database.run("ALTER TABLE accounts ADD COLUMN region TEXT");
    writeSchema(database, { version: known + 1, compatibleSince });
  });
}

async function inFolder(run: (path: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-newer-"));
  try {
    await run(join(folder, "sluice.db"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test("after an upgrade that only added to the schema, the version of before works again", () =>
  inFolder(async (path) => {
    await makeNewer(path, known);
    await using connection = new SqliteConnection({ path, busyTimeoutMs: 10 });
    const store = new SqlControlStore(connection);
    await store.change((to) => to.accounts.insert(accountOf("acct_a")));
    expect((await store.read((view) => view.accounts.get("acct_a")))?.id).toBe("acct_a");
    const expected = { version: known + 1, compatibleSince: known };
    expect(await connection.use(readSchema)).toEqual(expected);
  }));

test("a schema that older versions cannot use is refused and left as it is", () =>
  inFolder(async (path) => {
    await makeNewer(path, known + 1);
    await using connection = new SqliteConnection({ path, busyTimeoutMs: 10 });
    expect(await connection.open().catch((error: unknown) => error)).toBeInstanceOf(SchemaTooNew);
    using database = new Database(path, { readonly: true });
    expect(readSchema(database).version).toBe(known + 1);
  }));

test("a number that belongs to another version does not make a schema compatible", () =>
  inFolder(async (path) => {
    await makeNewer(path, known);
    const database = new Database(path);
    database.run(`PRAGMA user_version = ${known + 2}`);
    database.close();
    await using connection = new SqliteConnection({ path, busyTimeoutMs: 10 });
    expect(await connection.open().catch((error: unknown) => error)).toBeInstanceOf(SchemaTooNew);
  }));
