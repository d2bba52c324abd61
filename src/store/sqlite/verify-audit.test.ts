import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { auditDigest, firstDigest } from "../audit.ts";
import { auditEntryOf } from "../../../test/contracts/control-fixtures.ts";
import { SqliteConnection } from "./connection/connection.ts";
import { ControlStore } from "../repositories/control-store.ts";
import { readRecord } from "../repositories/audit.ts";
import { testPeppers } from "../../../test/support/test-peppers.ts";

/** Removes the triggers, as an attacker with write access to the file can. */
const withoutTriggers = `
  DROP TRIGGER audit_is_never_changed;
  DROP TRIGGER audit_is_never_cut;
`;

describe("a tampered audit", () => {
  const { signal } = new AbortController();
  const folder = temporaryFolder();
  const filled = join(folder.path, "filled.db");
  const path = join(folder.path, "tampered.db");
  let connection: SqliteConnection;
  let store: ControlStore;

  beforeAll(async () => {
    await using first = new SqliteConnection({ path: ":memory:", busyTimeoutMs: 10 });
    await new ControlStore(first, testPeppers()).change(async (to) => {
      for (let at = 1; at <= 1_200; at += 1) {
        await to.audit.append(auditEntryOf(at, { after: { note: `note ${at}` } }));
      }
    });
    await first.use((database) => database.query("VACUUM INTO ?").run(filled));
  });

  beforeEach(() => {
    copyFileSync(filled, path);
    connection = new SqliteConnection({ path, busyTimeoutMs: 10 });
    store = new ControlStore(connection, testPeppers());
  });

  afterEach(() => connection.close());

  afterAll(() => folder[Symbol.dispose]());

  async function verdictAfter(sql: string): Promise<unknown> {
    await connection.use((database) => database.run(withoutTriggers + sql));
    const { isIntact, entries, problem } = await store.verifyAudit(signal);
    return { isIntact, entries, problem };
  }

  const entryAt = (sequence: number) =>
    connection.read((queries) =>
      queries.selectFrom("audit").selectAll().where("sequence", "=", sequence).executeTakeFirst(),
    );

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

  test("shows an entry that was removed from the middle", async () => {
    expect(await verdictAfter("DELETE FROM audit WHERE sequence = 1000")).toEqual(
      broken(1_001, "entries before it are missing", 999),
    );
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
        action, subject_type, subject_id, account_id, before_fields, after_fields, digest, digest
        FROM audit WHERE sequence = 1200;
    `);
    expect(verdict).toEqual(broken(1_201, "it was changed"));
  });

  test("cut at an end or rewritten is detected by a checkpoint kept elsewhere", async () => {
    const { last } = await store.auditEnds();
    const cut = await verdictAfter("DELETE FROM audit WHERE sequence > 1100");
    expect(cut).toEqual({ isIntact: true, entries: 1_100, problem: undefined });
    expect((await store.verifyAudit(signal, last)).problem?.what).toBe(
      "the chain ends here, but once had 1200 entries",
    );
    const middle = { sequence: 500, digest: (await entryAt(500))?.digest };
    expect(await store.verifyAudit(signal, middle)).toMatchObject({ isIntact: true });
    await forgeChain(connection);
    expect(await store.verifyAudit(signal)).toMatchObject({ isIntact: true });
    expect((await store.verifyAudit(signal, middle)).problem?.what).toBe(
      "it is not the expected entry",
    );
    await connection.use((database) => database.run("DELETE FROM audit WHERE sequence < 900"));
    expect(await store.verifyAudit(signal)).toMatchObject({ first: { sequence: 900 } });
    expect((await store.verifyAudit(signal, middle)).problem?.what).toBe(
      "the expected entry is older than what is kept",
    );
  });

  test("is not pruned by retention, even if its entries were backdated", async () => {
    await verdictAfter("UPDATE audit SET at = 0 WHERE sequence > 50");
    const limits = { audit: 40, keys: 0, access: 0, replies: 0 };
    expect(await store.prune(limits, 5_000)).toBe(39);
    expect((await store.verifyAudit(signal)).problem).toEqual({
      sequence: 51,
      what: "it was changed",
    });
  });

  test("restored from an older copy is detected by a checkpoint kept elsewhere", async () => {
    const { last: older } = await store.auditEnds();
    using folder = temporaryFolder();
    const path = join(folder.path, "copy.db");
    await connection.use((database) => database.query("VACUUM INTO ?").run(path));
    await store.change((to) => to.audit.append(auditEntryOf(2_000)));
    const { last } = await store.auditEnds(older);
    await using restored = new SqliteConnection({ path, busyTimeoutMs: 10 });
    const other = new ControlStore(restored, testPeppers());
    expect(await other.verifyAudit(signal)).toMatchObject({ isIntact: true, entries: 1_200 });
    expect(await other.auditEnds(last)).toEqual({ first: 1, last: older, hasKnown: false });
    expect((await other.verifyAudit(signal, { digest: last.digest })).problem?.what).toBe(
      "the chain has no entry with the expected digest",
    );
    expect(await other.verifyAudit(signal, older)).toMatchObject({ isIntact: true });
  });

  test("cannot happen by mistake: triggers refuse changes, and removal of all", async () => {
    const attempts = ["UPDATE audit SET action = 'x' WHERE sequence = 3", "DELETE FROM audit"];
    for (const sql of attempts) {
      expect(connection.use((database) => database.run(sql))).rejects.toThrow("append-only");
    }
    expect(await store.verifyAudit(signal)).toMatchObject({ isIntact: true, entries: 1_200 });
  });

  test("entries that retention removes during the verification are no break", async () => {
    // Runs between the first page and the second.
    const verifying = store.verifyAudit(signal);
    const limits = { audit: 1_101, keys: 0, access: 0, replies: 0 };
    const pruning = store.prune(limits, 5_000);
    const verdict = await verifying;
    expect(verdict).toMatchObject({ isIntact: true });
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
