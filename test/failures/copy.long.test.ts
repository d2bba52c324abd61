import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import pg from "pg";
import { Peppers } from "../../src/domain/keys/peppers.ts";
import { Secret } from "../../src/domain/keys/secret.ts";
import {
  largeTables,
  leftTables,
  smallTables,
} from "../../src/store/repositories/copy/copied-tables.ts";
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
  const copied = [...largeTables, ...smallTables].map(({ name }) => name);
  expect([...copied, ...leftTables].toSorted()).toEqual(tables.map(({ name }) => name).toSorted());
});

describeWithPostgres((databases) => {
  test("a copy that is killed again and again is complete in the end, and a gateway runs on it", async () => {
    await using folder = makeProcessFolder({ pepper });
    const key = await makeFullDatabase(folder);
    const storageUrl = await databases.server.createDatabase();
    const ends = ["--from", `sqlite:${folder.databasePath}`, "--to", storageUrl];
    for (let kills = 0, least = 0; kills < 6; kills += 1) least = await killAfter(least, ends);
    await using copied = makeProcessFolder({ pepper, storageUrl });
    const early = await offline(copied, "accounts", "list");
    expect(early.errors).toContain(
      "is an unfinished copy. Please run the same `sluice copy` again",
    );

    const done = await runHere(["copy", ...ends]);
    expect([done.exitCode, done.errors.includes("not copied")]).toEqual([0, false]);
    expect(done.errors).toContain("going on with the copy that was begun");
    expect(done.output).toMatch(new RegExp(`^usage +${fullSize.calls + 1}  [0-9a-f]{64}$`, "m"));
    expect(done.output).toMatch(new RegExp(`^keys +${fullSize.keys + 1}  [0-9a-f]{64}$`, "m"));

    for (const command of [
      ["audit", "verify"],
      ["usage", "--by", "key,model", "--since", "2026-03-01", "--until", "2026-03-20"],
      ["keys", "list"],
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

  test("a database with other data, or the unfinished copy of another, is no target", async () => {
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

    const target = await databases.server.createDatabase();
    await begin(from, target);
    await offline(folder, "accounts", "create", "Later");
    const changed = await runHere(["copy", "--from", from, "--to", target]);
    expect(changed.errors).toContain("or of this one before it changed");
  });

  test("a copy that differs is not accepted", async () => {
    await using folder = makeProcessFolder({ pepper });
    await offline(folder, "accounts", "create", "Shop");
    const from = `sqlite:${folder.databasePath}`;
    const target = await databases.server.createDatabase();
    await using made = makeProcessFolder({ pepper, storageUrl: target });
    await offline(made, "accounts", "list");
    await query(
      target,
      `CREATE FUNCTION change_note() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN NEW.note := 'changed'; RETURN NEW; END $$;
       CREATE TRIGGER change_note BEFORE INSERT ON accounts
         FOR EACH ROW EXECUTE FUNCTION change_note()`,
    );
    const differs = await runHere(["copy", "--from", from, "--to", target]);
    expect(differs.exitCode).toBe(1);
    expect(differs.errors).toContain('the copy differs in accounts at ["acct_');
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
  await fillDatabase(folder.databasePath, new Peppers(new Secret(pepper), []));
  return output.trim();
}

/** Copies, and leaves the copy unfinished. */
async function begin(from: string, target: string): Promise<void> {
  await killAfter(0, ["--from", from, "--to", target]);
}

/** Kills a copy once it has more than `least` items of progress, or rows; returns how many. */
async function killAfter(least: number, ends: readonly string[]): Promise<number> {
  const child = spawnSluice(["copy", ...ends]);
  const target = ends.at(-1) ?? "";
  let progress = least;
  while (progress <= least && child.exitCode === null) progress = await readProgress(target);
  child.kill("SIGKILL");
  await child.exited;
  return progress;
}

async function readProgress(url: string): Promise<number> {
  const [{ found = null } = {}] = await query(url, "SELECT to_regclass('sluice_copy') AS found");
  if (found === null) return 0;
  const sum = "SELECT count(*) + coalesce(sum(rows), 0) AS sum";
  const [row = {}] = await query(url, `${sum} FROM sluice_copy`);
  return Number(row["sum"]);
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
