import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import pg from "pg";
import { migrations } from "../../src/store/sqlite/connection/migrations.ts";
import { describeWithPostgres } from "../support/postgres-databases.ts";
import type { FinishedCommand } from "../support/sluice-process.ts";
import { runHere } from "./run-here.ts";
import { createFolder, type SluiceFolder } from "./sluice-folder.ts";

let folder: SluiceFolder;
beforeAll(() => {
  folder = createFolder({ isOffline: true });
});
afterAll(() => folder[Symbol.dispose]());

/** Runs commands with a configuration of its own. */
async function gatewayOf(name: string, url: string, migrate = "check") {
  const path = await folder.write(
    `${name}.yaml`,
    `data_dir: ${folder.path}/${name}
storage: { url: "${url}", migrate: ${migrate} }
environments: [{ name: production, hosts: ["*"], models: ["*"] }]
upstreams: { server: { kind: openai, base_url: "http://127.0.0.1:9/v1", api_key: k } }
models:
  one: { kind: chat, context_window: 8000, max_output_tokens: 100, targets: [{ upstream: server, model: m }] }
auth: { peppers: ["a pepper for tests that is long enough"] }
`,
  );
  return (...command: string[]): Promise<FinishedCommand> =>
    runHere([...command, "--config", path]);
}

describe("SQLite", () => {
  test("a database is created and brought up to date once, and --check changes nothing", async () => {
    const file = `${folder.path}/fresh.db`;
    const sluice = await gatewayOf("fresh", `sqlite:${file}`);
    const due = await sluice("migrate", "--check");
    expect([due.exitCode, existsSync(file)]).toEqual([3, false]);
    expect(due.output).toContain(`from schema 0 to ${migrations.length}`);
    expect(due.output).toContain("\n  first-schema\n");
    const refused = await sluice("accounts", "list", "--offline");
    expect([refused.exitCode, existsSync(file)]).toEqual([1, false]);
    expect(refused.errors).toContain("run `sluice migrate` first");
    const done = await sluice("migrate");
    expect([done.exitCode, done.errors]).toEqual([0, ""]);
    expect(done.output).toContain(`the schema is ${migrations.length} now`);
    expect((await sluice("migrate", "--check")).exitCode).toBe(0);
    expect((await sluice("migrate")).output).toContain("is up to date");
    expect((await sluice("accounts", "list", "--offline")).exitCode).toBe(0);
  });

  test("an older schema is refused by a gateway that does not migrate, and left as it is", async () => {
    const file = `${folder.path}/older.db`;
    const older = new Database(file, { create: true });
    for (const { sql } of migrations.slice(0, 5)) older.run(sql);
    older.run("PRAGMA user_version = 5");
    const sluice = await gatewayOf("older", `sqlite:${file}`);
    const refused = await sluice("accounts", "list", "--offline");
    expect(refused.errors).toContain("has the schema 5, and this version needs");
    expect(older.query("PRAGMA user_version").get()).toEqual({ user_version: 5 });
    expect((await sluice("migrate", "--check")).output).toContain(
      "Stop gateways of versions before",
    );
    expect((await sluice("migrate")).exitCode).toBe(0);
    older.close();
  });

  test("a newer schema and wrong arguments are refused", async () => {
    const file = `${folder.path}/newer.db`;
    const newer = new Database(file, { create: true });
    newer.run("PRAGMA user_version = 999");
    newer.close();
    const sluice = await gatewayOf("newer", `sqlite:${file}`);
    const refused = await sluice("migrate");
    expect(refused.exitCode).toBe(1);
    expect(refused.errors).toContain("install a newer version");
    expect((await sluice("migrate", "now")).exitCode).toBe(2);
    expect((await sluice("migrate", "--wait", "soon")).exitCode).toBe(2);
  });
});

describeWithPostgres((databases) => {
  test("commands that run together create the schema once", async () => {
    const sluice = await gatewayOf("together", await databases.server.createDatabase());
    expect((await sluice("migrate", "--check")).exitCode).toBe(3);
    expect((await sluice("accounts", "list", "--offline")).errors).toContain("has no schema yet");
    const runs = await Promise.all([1, 2, 3].map(() => sluice("migrate")));
    for (const { exitCode, errors } of runs) expect([exitCode, errors]).toEqual([0, ""]);
    expect((await sluice("migrate", "--check")).exitCode).toBe(0);
    expect((await sluice("accounts", "list", "--offline")).exitCode).toBe(0);
  });

  test("a database that another process has locked is waited for, and given up in time", async () => {
    const url = await databases.server.createDatabase();
    const sluice = await gatewayOf("locked", url);
    const other = new pg.Client({ connectionString: url });
    await other.connect();
    try {
      await other.query("BEGIN; SELECT pg_advisory_xact_lock(x'536c7563'::int, 0)");
      const refused = await sluice("migrate", "--wait", "0");
      expect(refused.exitCode).toBe(1);
      expect(refused.errors).toContain("is locked by another process");
      const waiting = sluice("migrate", "--wait", "600");
      await other.query("ROLLBACK");
      expect((await waiting).exitCode).toBe(0);
    } finally {
      await other.end();
    }
  });

  test("a server that is away is reported once and waited for", async () => {
    const url = await databases.server.createDatabase();
    const sluice = await gatewayOf("away", url);
    await databases.server.kill();
    const waiting = sluice("migrate", "--wait", "600");
    await databases.server.start();
    const { exitCode, errors } = await waiting;
    expect(exitCode).toBe(0);
    const lines = errors.split("\n").filter((line) => line.includes("ECONNREFUSED"));
    expect(lines.length).toBeLessThanOrEqual(1);
  });
});
