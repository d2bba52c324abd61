import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testPeppers } from "../../../test/support/test-peppers.ts";
import { auditDigest, canonicalJson, firstDigest } from "../../domain/audit/audit-digest.ts";
import { AuditSeals } from "../../domain/audit/audit-seals.ts";
import type { Peppers } from "../../domain/keys/peppers.ts";
import { auditEntryOf } from "../../../test/contracts/control-fixtures.ts";
import { SqliteConnection } from "./connection/connection.ts";
import { SqlControlStore } from "../repositories/control-store.ts";
import { migrations, versionWithSeals } from "./connection/migrations.ts";

const { signal } = new AbortController();

function withPath(run: (path: string) => Promise<void>): () => Promise<void> {
  return async () => {
    const folder = mkdtempSync(join(tmpdir(), "sluice-audit-"));
    try {
      await run(join(folder, "sluice.db"));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
}

/** A database of the version before seals, with entries from one number to another. */
function writeDatabase(path: string, first: number, last: number): void {
  using database = new Database(path);
  database.run("PRAGMA synchronous = OFF");
  for (const { sql } of migrations.slice(0, versionWithSeals - 1)) database.run(sql);
  database.run(`PRAGMA user_version = ${versionWithSeals - 1}`);
  let previousDigest = firstDigest;
  for (let sequence = 1; sequence <= last; sequence += 1) {
    const entry = auditEntryOf(sequence);
    const digest = auditDigest(entry, sequence, previousDigest);
    if (sequence === first - 1) {
      database.query("INSERT INTO audit_anchor VALUES (?, ?)").run(sequence, digest);
    }
    if (sequence >= first) {
      const { actor, subject, address, requestId, accountId } = entry;
      const values = [sequence, entry.at, actor.kind, actor.id, actor.name, address, requestId];
      values.push(entry.action, subject.type, subject.id, accountId);
      values.push(canonicalJson(entry.before), canonicalJson(entry.after), previousDigest, digest);
      const parameters = values.map(() => "?").join(", ");
      database
        .query(`INSERT INTO audit VALUES (${parameters})`)
        .run(...values.map((value) => value ?? null));
    }
    previousDigest = digest;
  }
}

async function open<Result>(
  path: string,
  peppers: Peppers,
  work: (store: SqlControlStore, connection: SqliteConnection) => Promise<Result>,
): Promise<Result> {
  const seals = new AuditSeals(peppers);
  await using connection = new SqliteConnection({ path, busyTimeoutMs: 10, seals });
  return await work(new SqlControlStore(connection), connection);
}

function attack(path: string, sql: string): void {
  using database = new Database(path);
  database.run("DROP TRIGGER IF EXISTS audit_is_never_changed");
  database.run("DROP TRIGGER IF EXISTS audit_is_never_cut");
  database.run(sql);
}

const verify = (store: SqlControlStore) => store.verifyAudit(signal);

test(
  "a chain without seals is adopted as it is, and continued with seals",
  withPath(async (path) => {
    writeDatabase(path, 3, 5);
    const found = await open(path, testPeppers(), verify);
    expect(found).toMatchObject({ isIntact: true, entries: 3, removal: undefined });
    await open(path, testPeppers(), (store) =>
      store.change((to) => to.audit.append(auditEntryOf(6))),
    );
    expect(await open(path, testPeppers(), verify)).toMatchObject({ isIntact: true, entries: 4 });
  }),
);

test(
  "an entry without a seal that is younger than the adoption is a forgery",
  withPath(async (path) => {
    writeDatabase(path, 1, 2);
    await open(path, testPeppers(), (store) =>
      store.change((to) => to.audit.append(auditEntryOf(3))),
    );
    attack(path, "UPDATE audit SET seal = NULL, pepper = NULL WHERE sequence = 3");
    expect((await open(path, testPeppers(), verify)).problem).toEqual({
      sequence: 3,
      what: "it was not written by this installation",
    });
  }),
);

test(
  "a chain is adopted once: one that loses its end later is broken, at every opening",
  withPath(async (path) => {
    writeDatabase(path, 1, 4);
    await open(path, testPeppers(), verify);
    attack(path, "DELETE FROM audit WHERE sequence > 2; DELETE FROM audit_head");
    for (let time = 1; time <= 2; time += 1) {
      expect((await open(path, testPeppers(), verify)).isIntact).toBe(false);
    }
  }),
);

test(
  "after a rotation the audit does not need the old pepper, and forgeries are still detected",
  withPath(async (path) => {
    const append = (at: number) => (store: SqlControlStore) =>
      store.change((to) => to.audit.append(auditEntryOf(at)));
    for (const at of [1, 2, 3]) await open(path, testPeppers("old"), append(at));
    const limits = { now: 100, audit: 2, keys: 0, access: 0, replies: 0 };
    await open(path, testPeppers("old"), (store) => store.prune(limits, 10));
    expect((await open(path, testPeppers("new"), verify)).isIntact).toBe(false);
    expect((await open(path, testPeppers("new", "old"), verify)).isIntact).toBe(true);
    await open(path, testPeppers("new"), append(4));
    expect(await open(path, testPeppers("new"), verify)).toMatchObject({
      isIntact: true,
      entries: 3,
    });
    // An attacker with the old pepper cannot make seals of the new one.
    attack(path, "DELETE FROM audit WHERE sequence > 2");
    expect((await open(path, testPeppers("new"), verify)).problem?.sequence).toBe(2);
  }),
);
