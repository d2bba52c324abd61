import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { examineDatabase } from "./examine-database.ts";

/** A database of several hundred pages. */
function withDatabase(run: (path: string) => Promise<void>): () => Promise<void> {
  return async () => {
    const folder = mkdtempSync(join(tmpdir(), "sluice-examine-"));
    const path = join(folder, "sluice.db");
    try {
      using database = new Database(path, { create: true });
      database.run("PRAGMA journal_mode = WAL");
      database.run("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT");
      database.run(
        `WITH RECURSIVE many (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 5000)
         INSERT INTO notes SELECT n, hex(randomblob(100)) FROM many`,
      );
      database.run("PRAGMA wal_checkpoint(TRUNCATE)");
      await run(path);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
}

test(
  "a database in use with writes in its log is sound",
  withDatabase(async (path) => {
    expect(await examineDatabase(path)).toBeUndefined();
    using writer = new Database(path);
    writer.run("UPDATE notes SET text = 'x'");
    writer.run("BEGIN IMMEDIATE");
    writer.run("UPDATE notes SET text = 'y'");
    expect(await examineDatabase(path)).toBeUndefined();
  }),
);

test(
  "one invalid page in the middle is found and named",
  withDatabase(async (path) => {
    const bytes = readFileSync(path);
    bytes.fill(0xa5, 100 * 4_096, 101 * 4_096);
    writeFileSync(path, bytes);
    expect(await examineDatabase(path)).toContain("page 101");
  }),
);

test(
  "a truncated file, or one that is no database, is damaged",
  withDatabase(async (path) => {
    truncateSync(path, Math.floor(statSync(path).size / 2));
    expect(await examineDatabase(path)).toBeString();
    writeFileSync(path, "this is no database".repeat(1_000));
    expect(await examineDatabase(path)).toContain("not a database");
  }),
);

test("an unreadable file gets no verdict", async () => {
  expect(examineDatabase("/nowhere/sluice.db")).rejects.toThrow("unable to open");
});
