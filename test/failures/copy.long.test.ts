import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import pg from "pg";
import { copiedTables } from "../../src/store/repositories/copy-database.ts";
import { schema } from "../../src/store/sqlite/schema.ts";
import { fillDatabase, fullSize } from "../support/full-database.ts";
import { describeWithPostgres } from "../support/postgres-databases.ts";
import { spawnSluice, startServing } from "../support/sluice-process.ts";
import { runHere } from "../cli/run-here.ts";
import { callWith, makeProcessFolder, type ProcessFolder } from "./outage-process.ts";

const pepper = "a pepper for tests that is long enough";

test("every table is copied, or left for a reason", () => {
  using database = new Database(":memory:");
  database.run(schema);
  const tables = database
    .query<{ name: string }, []>(
      `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`,
    )
    .all();
  // What concerns the processes of a database alone, and responses, which live for an hour.
  const left = ["processes", "job_locks", "call_claims", "stored_responses"];
  const copied = copiedTables.map(({ name }) => name);
  expect([...copied, ...left].toSorted()).toEqual(tables.map(({ name }) => name).toSorted());
});

describeWithPostgres((databases) => {
  test("a copy that is killed leaves nothing; the next one is complete, and a gateway runs on it", async () => {
    await using folder = makeProcessFolder({ pepper });
    const key = await makeFullDatabase(folder);
    const storageUrl = await databases.server.createDatabase();
    const ends = ["--from", `sqlite:${folder.databasePath}`, "--to", storageUrl];
    await killWhileCopying(ends);
    await using copied = makeProcessFolder({ pepper, storageUrl });
    expect(await query(storageUrl, "SELECT id FROM accounts")).toEqual([]);

    const done = await runHere(["copy", ...ends]);
    expect(done.exitCode).toBe(0);
    expect(done.output).toContain(`usage: ${fullSize.calls + 1}\n`);
    expect(done.output).toContain(`keys: ${fullSize.keys + 1}\n`);
    expect(done.output).toContain(`budgets: ${fullSize.keys}\n`);
    expect(done.output).toMatch(/budget_spend: [1-9][0-9]+\nbudget_alerts: [1-9]/);

    for (const command of [
      ["audit", "verify"],
      ["usage", "--by", "key,model", "--since", "2026-03-01", "--until", "2026-03-20"],
      ["keys", "list"],
      ["budgets", "list", "--limit", "1500"],
    ]) {
      const [before, after] = [
        await offline(folder, ...command),
        await offline(copied, ...command),
      ];
      expect(after).toEqual(before);
      expect(after.exitCode).toBe(0);
    }
    await using gateway = await startServing(["--config", copied.configPath]);
    while ((await callWith(gateway, key)) !== 200) await Bun.sleep(50);

    const again = await runHere(["copy", ...ends]);
    expect(again.exitCode).toBe(1);
    expect(again.errors).toContain("is in use. Please stop its gateways first");
  });

  test("a database with other data is no target", async () => {
    await using folder = makeProcessFolder({ pepper });
    await offline(folder, "accounts", "create", "Shop");
    const storageUrl = await databases.server.createDatabase();
    await using used = makeProcessFolder({ pepper, storageUrl });
    await offline(used, "accounts", "create", "Other");
    const from = `sqlite:${folder.databasePath}`;
    const refused = await runHere(["copy", "--from", from, "--to", storageUrl]);
    expect(refused.exitCode).toBe(1);
    expect(refused.errors).toContain("the target already has accounts");
    expect((await offline(used, "accounts", "list")).output).toContain("Other");
  });

  test("a database in use, or of another schema, is no source", async () => {
    await using folder = makeProcessFolder({ pepper });
    const target = await databases.server.createDatabase();
    const ends = ["--from", `sqlite:${folder.databasePath}`, "--to", target];
    {
      await using _ = await startServing(["--config", folder.configPath]);
      expect((await runHere(["copy", ...ends])).errors).toContain("is in use");
    }
    const older = new Database(join(folder.dataDir, "older.db"), { create: true });
    older.run("CREATE TABLE accounts (id TEXT); PRAGMA user_version = 5");
    older.close();
    const ofOlder = ["--from", `sqlite:${folder.dataDir}/older.db`, "--to", target];
    expect((await runHere(["copy", ...ofOlder])).errors).toContain("has the schema 5");
  });

  test("a copy back to SQLite is equal", async () => {
    await using folder = makeProcessFolder({ pepper });
    await makeFullDatabase(folder);
    const server = await databases.server.createDatabase();
    const from = `sqlite:${folder.databasePath}`;
    const there = await runHere(["copy", "--from", from, "--to", server]);
    const file = `sqlite:${folder.dataDir}/back.db`;
    const back = await runHere(["copy", "--from", server, "--to", file]);
    expect([there.exitCode, back.exitCode, back.output]).toEqual([0, 0, there.output]);
    using before = new Database(folder.databasePath, { readonly: true });
    using after = new Database(`${folder.dataDir}/back.db`, { readonly: true });
    for (const { name, key } of copiedTables) {
      const rows = `SELECT * FROM ${name} ORDER BY ${key.join(", ")}`;
      // PostgreSQL takes no NUL.
      const taken = JSON.stringify(before.query(rows).all()).replaceAll("\\u0000", "\u{fffd}");
      expect(JSON.stringify(after.query(rows).all()), name).toBe(taken);
    }
  });
});

describe("copy", () => {
  test("its arguments are checked, and no message has a password", async () => {
    expect((await runHere(["copy", "--from", "sqlite:a.db"])).exitCode).toBe(2);
    const wrong = await runHere(["copy", "--from", "mysql://u:geheim@h/d", "--to", "sqlite:a.db"]);
    expect([wrong.exitCode, wrong.errors.includes("geheim")]).toEqual([2, false]);
  });
});

/** A key of a database with rows in every table. */
async function makeFullDatabase(folder: ProcessFolder): Promise<string> {
  await offline(folder, "accounts", "create", "Shop");
  const place = ["--account", "Shop", "--environment", "production"];
  await offline(folder, "applications", "create", "search", ...place);
  const issued = ["keys", "create", "--application", "search", "--plan", "pilot"];
  const { output } = await offline(folder, ...issued);
  await fillDatabase(folder.databasePath);
  return output.trim();
}

/** Kills a copy once it has copied the first tables. */
async function killWhileCopying(ends: readonly string[]): Promise<void> {
  const child = spawnSluice(["copy", ...ends]);
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    if (text.includes("accounts: ")) break;
  }
  child.kill("SIGKILL");
  await child.exited;
}

async function query(url: string, statement: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(statement)).rows;
  } finally {
    await client.end();
  }
}

function offline({ configPath }: ProcessFolder, ...command: readonly string[]) {
  return runHere([...command, "--offline", "--config", configPath]);
}
