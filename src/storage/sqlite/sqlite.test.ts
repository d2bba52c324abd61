import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { keyOf, keyStoreContract, secretOf } from "../contract/key-store-contract.ts";
import { usageStoreContract } from "../contract/usage-store-contract.ts";
import { SqliteKeyStore } from "./key-store.ts";
import { migrations } from "./migrations.ts";
import { openDatabase } from "./open-database.ts";
import { SqliteUsageStore } from "./usage-store.ts";

keyStoreContract("SQLite", () => new SqliteKeyStore(openDatabase(":memory:")));
usageStoreContract("SQLite", () => new SqliteUsageStore(openDatabase(":memory:")));

function withFolder(run: (folder: string) => void | Promise<void>): () => Promise<void> {
  return async () => {
    const folder = mkdtempSync(join(tmpdir(), "sluice-sqlite-"));
    try {
      await run(folder);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
}

test(
  "what one connection writes, another notices by the version and then reads",
  withFolder(async (folder) => {
    const path = join(folder, "deep", "sluice.db");
    using one = openDatabase(path);
    using other = openDatabase(path);
    const reader = new SqliteKeyStore(one);
    const before = await reader.version();
    expect(await reader.version()).toBe(before);
    await new SqliteKeyStore(other).create(keyOf("key_a"), secretOf("aaaaaaaa", "key_a"));
    expect(await reader.version()).not.toBe(before);
    expect(await reader.list()).toHaveLength(1);
  }),
);

test(
  "a database is migrated once and opened again without change",
  withFolder((folder) => {
    const path = join(folder, "sluice.db");
    openDatabase(path).close();
    using again = openDatabase(path);
    const row = again.query<{ user_version: number }, []>("PRAGMA user_version").get();
    expect(row?.user_version).toBe(migrations.length);
  }),
);

test(
  "a database of a newer version is refused with its path",
  withFolder((folder) => {
    const path = join(folder, "sluice.db");
    using newer = new Database(path, { create: true });
    newer.run(`PRAGMA user_version = ${migrations.length + 1}`);
    expect(() => openDatabase(path)).toThrow(path);
  }),
);

test(
  "a file that is no database is refused",
  withFolder(async (folder) => {
    const path = join(folder, "sluice.db");
    await Bun.write(path, "this is no database, and it is long enough to look like one".repeat(20));
    expect(() => openDatabase(path)).toThrow();
  }),
);
