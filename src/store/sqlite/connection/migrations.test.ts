import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SqliteConnection } from "./connection.ts";
import { SqlControlStore } from "../../repositories/control-store.ts";
import { SqlKeyStore } from "../../repositories/key-store.ts";
import { migrations } from "./migrations.ts";
import { firstSchema } from "../migrations/first-schema.ts";

/** Keys of the first version of Sluice, with two applications of one name. */
const oldKeys = [
  {
    id: "key_1",
    application: "search",
    environment: "production",
    limits: [7, 900],
    revokedAt: null,
  },
  { id: "key_2", application: "search", environment: "production", limits: null, revokedAt: 5_000 },
  { id: "key_3", application: "search", environment: "staging", limits: null, revokedAt: null },
  { id: "key_4", application: "chat", environment: "production", limits: null, revokedAt: null },
] as const;

const usageRows = 1_000;

function withFolder(run: (folder: string) => Promise<void>): () => Promise<void> {
  return async () => {
    const folder = mkdtempSync(join(tmpdir(), "sluice-migrations-"));
    try {
      await run(folder);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
}

/** A database of an earlier schema, filled at the first one. */
function writeDatabase(path: string, version: number): void {
  using database = new Database(path, { create: true });
  database.run("PRAGMA journal_mode = WAL");
  database.run("PRAGMA synchronous = OFF");
  database.run("PRAGMA foreign_keys = ON");
  database.run(firstSchema);
  fillFirstSchema(database);
  for (const { sql } of migrations.slice(1, version)) database.run(sql);
  database.run(`PRAGMA user_version = ${version}`);
}

function fillFirstSchema(database: Database): void {
  const insertKey = database.query("INSERT INTO keys VALUES (?, ?, ?, 'standard', ?, ?, ?, ?)");
  const insertSecret = database.query("INSERT INTO secrets VALUES (?, ?, ?, ?, ?)");
  for (const [index, key] of oldKeys.entries()) {
    const [requests, tokens] = key.limits ?? [null, null];
    const createdAt = 1_000 - index;
    insertKey.run(
      key.id,
      key.application,
      key.environment,
      requests,
      tokens,
      createdAt,
      key.revokedAt,
    );
    insertSecret.run(`public${index}`, key.id, digestOf(key.id), createdAt, null);
  }
  insertSecret.run("rotated", "key_1", digestOf("rotated"), 900, 9_000_000_000_000);
  const insertCall = database.query(
    `INSERT INTO usage VALUES (?, ?, ?, ?, ?, 'alpha-sonnet-4', ?, 'on-demand', ?, ?, ?, 'upstream',
       ?, ?, ?, 0, 1, 12.5, 80.25)`,
  );
  database.transaction(() => {
    for (let index = 0; index < usageRows; index += 1) {
      const key = index % 5 === 4 ? { ...oldKeys[0], id: "key_gone" } : oldKeys[index % 4];
      const isGood = index % 10 !== 0;
      insertCall.run(
        `req_${index}`,
        1_700_000_000_000 + index * 60_000,
        key?.environment ?? "",
        key?.application ?? "",
        key?.id ?? "",
        isGood ? "bedrock/a" : null,
        index,
        2 * index,
        index % 3,
        isGood ? "completed" : "failed",
        isGood ? 200 : 503,
        isGood ? null : "model_unavailable",
      );
    }
  })();
}

function digestOf(text: string): Uint8Array {
  return new Uint8Array(new Bun.CryptoHasher("sha256").update(text).digest());
}

function sumsOf(database: Database): unknown {
  return database
    .query(
      `SELECT key_id, environment, application, outcome, count(*) AS calls,
         sum(input_tokens) AS input, sum(output_tokens) AS output, sum(cached_input_tokens) AS cached,
         min(started_at) AS first, sum(duration_ms) AS duration
       FROM usage GROUP BY key_id, environment, application, outcome ORDER BY 1, 2, 3, 4`,
    )
    .all();
}

const earlier = Array.from({ length: migrations.length - 1 }, (_, index) => index + 1);

describe.each(earlier)("a filled database of schema %i", (version) => {
  let folder: string;
  let connection: SqliteConnection;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "sluice-migrations-"));
    const path = join(folder, "sluice.db");
    writeDatabase(path, version);
    connection = new SqliteConnection({ path, busyTimeoutMs: 10 });
  });

  afterAll(async () => {
    await connection.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test("keeps its keys, their limits and their secrets, and those that were revoked stay so", async () => {
    const keys = new SqlKeyStore(connection, { now: () => 10_000 });
    const { changes } = await keys.loadKeys(0, 100);
    const live = new Map(changes.map((change) => [change.keyId, change.live]));
    expect(live.size).toBe(oldKeys.length);
    for (const [place, key] of oldKeys.entries()) {
      const found = live.get(key.id);
      if (key.revokedAt !== null) {
        expect(found).toBeUndefined();
        continue;
      }
      expect(found?.key).toMatchObject({
        environment: key.environment,
        application: key.application,
        plan: "standard",
        provisionedUnits: 0,
        provisionedPool: undefined,
        createdAt: 1_000 - place,
        revision: 1,
      });
      const [requestsPerMinute, tokensPerMinute] = key.limits ?? [];
      expect(found?.key.limits).toEqual(
        requestsPerMinute === undefined || tokensPerMinute === undefined
          ? undefined
          : { requestsPerMinute, tokensPerMinute },
      );
      const secret = found?.secrets.find(({ publicId }) => publicId === `public${place}`);
      expect(Buffer.from(secret?.digest ?? []).equals(digestOf(key.id))).toBe(true);
    }
    const rotated = live.get("key_1")?.secrets.find(({ publicId }) => publicId === "rotated");
    expect(rotated?.expiresAt).toBe(9_000_000_000_000);
    expect(Buffer.from(rotated?.digest ?? []).equals(digestOf("rotated"))).toBe(true);
  });

  test("gets one account, an application for each name and environment, and can be changed", async () => {
    const store = new SqlControlStore(connection);
    const page = { limit: 100 };
    const accounts = await store.read((view) => view.accounts.list({}, page));
    expect(accounts.items.map(({ name, revision }) => [name, revision])).toEqual([["default", 1]]);
    const applications = await store.read((view) => view.applications.list({}, page));
    const names = applications.items.map(({ environment, name }) => `${environment}/${name}`);
    expect(names.toSorted()).toEqual(["production/chat", "production/search", "staging/search"]);
    const revoked = await store.read((view) => view.keys.get("key_2"));
    expect(revoked?.revokedAt).toBe(5_000);
    const key = await store.read((view) => view.keys.get("key_1"));
    if (key === undefined) throw new Error("the key is gone");
    const { epoch } = await new SqlKeyStore(connection, { now: () => 0 }).loadKeys(0, 100);
    await store.change((to) => to.keys.update({ ...key, note: "after" }));
    const later = await new SqlKeyStore(connection, { now: () => 0 }).loadKeys(epoch, 100);
    expect(later.changes.map(({ keyId }) => keyId)).toEqual(["key_1"]);
  });

  test("keeps every call and every sum, and calls of known keys get their account and application", async () => {
    const first = new Database(":memory:");
    first.run(firstSchema);
    fillFirstSchema(first);
    expect(await connection.use(sumsOf)).toEqual(sumsOf(first));
    const owners = await connection.use((database) =>
      database
        .query<{ key_id: string; fits: number; calls: number }, []>(
          `SELECT key_id, count(*) AS calls,
               usage.application_id = coalesce(keys.application_id, '')
                 AND usage.account_id = coalesce(keys.account_id, '') AS fits
             FROM usage LEFT JOIN keys ON keys.id = usage.key_id GROUP BY key_id, fits ORDER BY key_id`,
        )
        .all(),
    );
    const calls = { key_1: 200, key_2: 200, key_3: 200, key_4: 200, key_gone: 200 };
    expect(owners).toEqual(
      Object.entries(calls).map(([keyId, count]) => ({ key_id: keyId, fits: 1, calls: count })),
    );
  });

  test("is sound afterwards: whole, and every reference has what it refers to", async () => {
    const check = (pragma: string): Promise<unknown> =>
      connection.use((database) => database.query(`PRAGMA ${pragma}`).all());
    expect(await check("integrity_check")).toEqual([{ integrity_check: "ok" }]);
    expect(await check("foreign_key_check")).toEqual([]);
    expect(await check("user_version")).toEqual([{ user_version: migrations.length }]);
  });
});

/** Opens the database at a path and prints its number of keys. */
const program = `
  const { SqliteConnection } = await import(process.argv[1]);
  const connection = new SqliteConnection({ path: process.argv[2], busyTimeoutMs: 10, lockWaitMs: 30000 });
  const count = (database) => database.query("SELECT count(*) AS keys FROM keys").get().keys;
  console.log(await connection.use(count));
`;

async function openInProcesses(path: string, count: number): Promise<readonly string[]> {
  const module = join(import.meta.dir, "connection.ts");
  const outputs = Array.from({ length: count }, async () => {
    const child = Bun.spawn([process.execPath, "-e", program, module, path], { stderr: "pipe" });
    const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    return (await child.exited) === 0 ? output.trim() : errors;
  });
  return Promise.all(outputs);
}

test(
  "processes that start together migrate a database once",
  withFolder(async (folder) => {
    const filled = join(folder, "filled.db");
    writeDatabase(filled, 1);
    expect(await openInProcesses(filled, 3)).toEqual(["4", "4", "4"]);
    expect(await openInProcesses(join(folder, "new.db"), 3)).toEqual(["0", "0", "0"]);
  }),
);

test(
  "a failed step leaves the database unchanged",
  withFolder(async (folder) => {
    const path = join(folder, "sluice.db");
    writeDatabase(path, 1);
    const spoiler = new Database(path);
    // A later step fails because of a table of this name.
    spoiler.run("CREATE TABLE replies (id TEXT)");
    const before = sumsOf(spoiler);
    await using connection = new SqliteConnection({ path, busyTimeoutMs: 10 });
    expect(connection.open()).rejects.toThrow("cannot be opened");
    const version = spoiler.query<{ user_version: number }, []>("PRAGMA user_version").get();
    expect(version?.user_version).toBe(1);
    expect(sumsOf(spoiler)).toEqual(before);
    spoiler.close();
  }),
);

test(
  "an up-to-date database is opened without a change",
  withFolder(async (folder) => {
    const path = join(folder, "sluice.db");
    const versionOf = (connection: SqliteConnection): Promise<unknown> =>
      connection.use((database) => database.query("PRAGMA schema_version").get());
    const first = new SqliteConnection({ path, busyTimeoutMs: 10 });
    const before = await versionOf(first);
    await first.close();
    await using again = new SqliteConnection({ path, busyTimeoutMs: 10 });
    expect(await versionOf(again)).toEqual(before);
  }),
);
