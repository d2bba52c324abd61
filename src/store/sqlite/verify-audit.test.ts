import type { Database } from "bun:sqlite";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testPeppers } from "../../../test/support/test-peppers.ts";
import { auditDigest, firstDigest } from "../../domain/audit/audit-digest.ts";
import { AuditSeals } from "../../domain/audit/audit-seals.ts";
import { auditEntryOf } from "../../../test/contracts/control-fixtures.ts";
import { SqliteConnection } from "./connection/connection.ts";
import { SqlControlStore } from "../repositories/control-store.ts";
import { readRecord } from "../repositories/audit/audit-row.ts";

/** Removes the triggers, as an attacker with write access to the file can. */
const withoutTriggers = `
  DROP TRIGGER audit_is_never_changed;
  DROP TRIGGER audit_is_never_cut;
`;

describe("a tampered audit", () => {
  const { signal } = new AbortController();
  const seals = new AuditSeals(testPeppers());
  const folder = temporaryFolder();
  const filled = join(folder.path, "filled.db");
  const path = join(folder.path, "tampered.db");
  let connection: SqliteConnection;
  let store: SqlControlStore;

  beforeAll(async () => {
    await using first = new SqliteConnection({ path: ":memory:", busyTimeoutMs: 10, seals });
    await new SqlControlStore(first).change(async (to) => {
      for (let at = 1; at <= 1_200; at += 1) {
        await to.audit.append(auditEntryOf(at, { after: { note: `note ${at}` } }));
      }
    });
    await first.use((database) => database.query("VACUUM INTO ?").run(filled));
  });

  beforeEach(() => {
    copyFileSync(filled, path);
    connection = new SqliteConnection({ path, busyTimeoutMs: 10, seals });
    store = new SqlControlStore(connection);
  });

  afterEach(() => connection.close());

  afterAll(() => folder[Symbol.dispose]());

  async function verdictAfter(sql: string): Promise<unknown> {
    await connection.use((database) => database.run(withoutTriggers + sql));
    const { isIntact, entries, problem } = await store.verifyAudit(signal);
    return { isIntact, entries, problem };
  }

  function broken(sequence: number, what: string, entries = sequence - 1): unknown {
    return { isIntact: false, entries, problem: { sequence, what } };
  }

  const changes = [
    "at = 1",
    "actor_kind = 'local'",
    "actor_id = NULL",
    "actor_name = 'eve@example.com'",
    "address = '198.51.100.1'",
    "request_id = NULL",
    "action = 'key.delete'",
    "subject_type = 'user'",
    "subject_id = 'key_b'",
    "account_id = NULL",
    "before_fields = NULL",
    `after_fields = '{"note":"other"}'`,
    "after_fields = 'no json'",
    "after_fields = '[]'",
  ];
  test.each(changes)("shows where a field was changed: %s", async (change) => {
    const verdict = await verdictAfter(`UPDATE audit SET ${change} WHERE sequence = 1100`);
    expect(verdict).toEqual(broken(1_100, "it was changed"));
  });

  test("shows a changed digest, and a recomputed one", async () => {
    const next = "it does not continue from the entry before it";
    const sql = `UPDATE audit SET digest = '${"0".repeat(64)}' WHERE sequence = 7`;
    expect(await verdictAfter(sql)).toEqual(broken(7, "it was changed"));
    const record = `UPDATE audit SET previous_digest = '${"0".repeat(64)}' WHERE sequence = 7`;
    await connection.use((database) => database.run(record));
    expect((await store.verifyAudit(signal)).problem).toEqual({ sequence: 7, what: next });
  });

  test("shows a removed entry, in the middle and at the beginning", async () => {
    const missing = "entries before it are missing";
    expect(await verdictAfter("DELETE FROM audit WHERE sequence = 1000")).toEqual(
      broken(1_001, missing, 999),
    );
    await connection.use((database) => database.run("DELETE FROM audit WHERE sequence = 1"));
    expect((await store.verifyAudit(signal)).problem).toEqual({ sequence: 2, what: missing });
  });

  test("shows swapped entries", async () => {
    const verdict = await verdictAfter(`
      UPDATE audit SET sequence = 100000 WHERE sequence = 5;
      UPDATE audit SET sequence = 5 WHERE sequence = 6;
      UPDATE audit SET sequence = 6 WHERE sequence = 100000;
    `);
    expect(verdict).toEqual(broken(5, "it does not continue from the entry before it"));
  });

  test("shows an inserted entry", async () => {
    const verdict = await verdictAfter(`
      INSERT INTO audit SELECT 1201, at, actor_kind, actor_id, actor_name, address, request_id,
        action, subject_type, subject_id, account_id, before_fields, after_fields, digest, digest, pepper, seal
        FROM audit WHERE sequence = 1200;
    `);
    expect(verdict).toEqual(broken(1_201, "it was changed"));
  });

  test("shows that its end was cut off, also when nothing is left", async () => {
    const missing = "entries after it are missing: the last one was 1200";
    const verdict = await verdictAfter("DELETE FROM audit WHERE sequence > 1100");
    expect(verdict).toEqual(broken(1_100, missing, 1_100));
    await connection.use((database) => database.run("DELETE FROM audit"));
    expect((await store.verifyAudit(signal)).problem).toEqual({ sequence: 0, what: missing });
  });

  test("later entries do not hide a cut", async () => {
    await verdictAfter("DELETE FROM audit WHERE sequence > 1100");
    await store.change((to) => to.audit.append(auditEntryOf(2_000)));
    const { problem } = await store.verifyAudit(signal);
    expect(problem).toEqual({ sequence: 1_201, what: "entries before it are missing" });
  });

  test("shows a forged anchor that was written to pass the triggers", async () => {
    const attack = `
      INSERT INTO audit_anchor (sequence, digest)
        SELECT sequence, digest FROM audit WHERE sequence = 1100;
      DELETE FROM audit WHERE sequence <= 1100;
    `;
    await connection.use((database) => database.run(attack));
    const notOwn = "the record of what retention removed was not written by this installation";
    expect((await store.verifyAudit(signal)).problem?.what).toBe(notOwn);
    await connection.use((database) => database.run("DELETE FROM audit_anchor"));
    expect((await store.verifyAudit(signal)).problem?.what).toBe("entries before it are missing");
  });

  test("shows an anchor with the seal of another value", async () => {
    await store.prune({ now: 5_000, audit: 11, keys: 0, access: 0, replies: 0 }, 5_000);
    const changes = ["sequence = 11", "at = 1", "kept_ms = 1", "removed_at = 9", "pepper = 'x'"];
    for (const change of changes) {
      await connection.use((database) => {
        database.run("CREATE TEMP TABLE true_anchor AS SELECT * FROM audit_anchor");
        database.run(`UPDATE audit_anchor SET ${change}`);
      });
      expect((await store.verifyAudit(signal)).isIntact).toBe(false);
      await connection.use((database) => {
        database.run("DELETE FROM audit_anchor");
        database.run("INSERT INTO audit_anchor SELECT * FROM true_anchor");
        database.run("DROP TABLE true_anchor");
      });
    }
    expect(await store.verifyAudit(signal)).toMatchObject({ isIntact: true, entries: 1_190 });
  });

  test("shows a rewritten chain, and a missing head", async () => {
    await connection.use((database) => database.run(withoutTriggers));
    const forged = await forgeChain(connection);
    expect(await store.verifyAudit(signal)).toMatchObject({
      isIntact: false,
      problem: { sequence: 1, what: "it was not written by this installation" },
    });
    // Without seals, as an earlier version would have written it.
    await connection.use((database) => database.run("UPDATE audit SET seal = NULL, pepper = NULL"));
    expect((await store.verifyAudit(signal)).problem?.sequence).toBe(1);
    await connection.use((database) =>
      database.run(`UPDATE audit_head SET plain_until = 1200, digest = '${forged}'`),
    );
    const gone = "the record of the end of the chain is missing, or not this installation's";
    expect((await store.verifyAudit(signal)).problem?.what).toBe(gone);
    await connection.use((database) => database.run("DELETE FROM audit_head"));
    await store.change((to) => to.audit.append(auditEntryOf(2_000)));
    expect((await store.verifyAudit(signal)).problem?.what).toBe(gone);
  });

  test("is not pruned by retention, even if its entries were backdated", async () => {
    await verdictAfter("UPDATE audit SET at = 0 WHERE sequence > 50");
    const limits = { now: 5_000, audit: 40, keys: 0, access: 0, replies: 0 };
    expect(await store.prune(limits, 5_000)).toBe(39);
    expect((await store.verifyAudit(signal)).problem).toEqual({
      sequence: 51,
      what: "it was changed",
    });
  });

  test("shows entries that were removed too early, as by a clock that was ahead", async () => {
    const keptMs = 1_000_000;
    await store.prune({ now: 1_000_011, audit: 11, keys: 0, access: 0, replies: 0 }, 5_000);
    expect(await store.verifyAudit(signal, { now: 10 + keptMs })).toMatchObject({
      isIntact: true,
      removal: { at: 10, removedAt: 1_000_011, keptMs },
    });
    const early = await store.verifyAudit(signal, { now: 9 + keptMs });
    expect(early.problem).toEqual({
      sequence: 10,
      what: "entries up to it were removed before retention allowed it",
    });
  });

  test("restored from an older copy is detected by a checkpoint kept elsewhere", async () => {
    const { end: older } = await store.auditEnd();
    using folder = temporaryFolder();
    const path = join(folder.path, "copy.db");
    await connection.use((database) => database.query("VACUUM INTO ?").run(path));
    await store.change((to) => to.audit.append(auditEntryOf(2_000)));
    const { end } = await store.auditEnd(older);
    await using restored = new SqliteConnection({ path, busyTimeoutMs: 10, seals });
    const other = new SqlControlStore(restored);
    expect(await other.verifyAudit(signal)).toMatchObject({ isIntact: true, entries: 1_200 });
    expect(await other.auditEnd(end)).toEqual({ end: older, hasKnown: false });
    expect((await other.verifyAudit(signal, { digest: end?.digest })).problem?.what).toBe(
      "the chain has no entry with the expected digest",
    );
    expect((await other.verifyAudit(signal, end)).problem?.what).toBe(
      "the chain ends here, but once had 1201 entries",
    );
    expect(await other.verifyAudit(signal, older)).toMatchObject({ isIntact: true });
  });

  test("cannot happen by mistake: triggers refuse changes and removals", async () => {
    const attempts = [
      "UPDATE audit SET action = 'x' WHERE sequence = 3",
      "DELETE FROM audit WHERE sequence = 3",
      "DELETE FROM audit",
    ];
    for (const sql of attempts) {
      expect(connection.use((database) => database.run(sql))).rejects.toThrow("append-only");
    }
    expect(await store.verifyAudit(signal)).toMatchObject({ isIntact: true, entries: 1_200 });
  });

  test("cannot lose entries after the retained beginning by mistake", async () => {
    await store.prune({ now: 5_000, audit: 11, keys: 0, access: 0, replies: 0 }, 5_000);
    const count = (database: Database): unknown =>
      database.query("SELECT count(*) AS entries FROM audit").get();
    expect(await connection.use(count)).toEqual({ entries: 1_190 });
    const cut = connection.use((database) => database.run("DELETE FROM audit WHERE sequence = 11"));
    expect(cut).rejects.toThrow("append-only");
  });

  test("entries that retention removes during the verification are no break", async () => {
    // Runs between the first page and the second.
    const verifying = store.verifyAudit(signal);
    const limits = { now: 5_000, audit: 1_101, keys: 0, access: 0, replies: 0 };
    const pruning = store.prune(limits, 5_000);
    const verdict = await verifying;
    expect(verdict).toMatchObject({ isIntact: true, removal: { at: 1_100 } });
    // One page from before, and the remaining entries.
    expect(verdict.entries).toBeLessThan(1_200);
    await pruning;
    expect(await store.verifyAudit(signal)).toMatchObject({ isIntact: true, entries: 100 });
  });

  test("is verified in short steps, with other work in between", async () => {
    let isDone = false;
    let turns = 0;
    const count = (): void => {
      turns += 1;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    await store.verifyAudit(signal);
    isDone = true;
    expect(turns).toBeGreaterThan(10);
  });

  test("is not verified further once the caller has left", async () => {
    const leaving = new AbortController();
    const verifying = store.verifyAudit(leaving.signal);
    setImmediate(() => leaving.abort(new Error("the caller has left")));
    expect(verifying).rejects.toThrow("the caller has left");
    await verifying.catch(() => undefined);
  });
});

/** Rewrites all entries, which is possible without the pepper; returns the digest of the last. */
function forgeChain(connection: SqliteConnection): Promise<string> {
  return connection.change(async (queries) => {
    const forged = queries.updateTable("audit");
    await forged.set({ actorName: "eve@example.com" }).where("sequence", "=", 1).execute();
    let previousDigest = firstDigest;
    for (const row of await queries.selectFrom("audit").selectAll().orderBy("sequence").execute()) {
      const digest = auditDigest(readRecord(row), row.sequence, previousDigest);
      const link = { previousDigest, digest };
      await forged.set(link).where("sequence", "=", row.sequence).execute();
      previousDigest = digest;
    }
    return previousDigest;
  });
}

function temporaryFolder(): { readonly path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), "sluice-audit-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
