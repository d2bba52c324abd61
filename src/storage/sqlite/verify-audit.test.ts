import type { Database } from "bun:sqlite";
import { beforeEach, describe, expect, test } from "bun:test";
import { auditEntryOf } from "../contract/control-fixtures.ts";
import { SqliteConnection } from "./connection.ts";
import { SqliteControlStore } from "./control-store.ts";

/** Somebody who can write the database file and knows how to get around its triggers. */
const withoutTriggers = `
  DROP TRIGGER audit_is_never_changed;
  DROP TRIGGER audit_is_never_cut;
`;

describe("a tampered audit", () => {
  const { signal } = new AbortController();
  let connection: SqliteConnection;
  let store: SqliteControlStore;

  beforeEach(async () => {
    connection = new SqliteConnection({ path: ":memory:", busyTimeoutMs: 10 });
    store = new SqliteControlStore(connection);
    await store.change(async (to) => {
      for (let at = 1; at <= 1_200; at += 1) {
        await to.audit.append(auditEntryOf(at, { after: { note: `note ${at}` } }));
      }
    });
  });

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

  test("shows a digest that was changed, and one that was made to fit", async () => {
    const next = "it does not continue from the entry before it";
    const sql = `UPDATE audit SET digest = '${"0".repeat(64)}' WHERE sequence = 7`;
    expect(await verdictAfter(sql)).toEqual(broken(7, "it was changed"));
    const record = `UPDATE audit SET previous_digest = '${"0".repeat(64)}' WHERE sequence = 7`;
    await connection.use((database) => database.run(record));
    expect((await store.verifyAudit(signal)).problem).toEqual({ sequence: 7, what: next });
  });

  test("shows an entry that was removed, in the middle and at the beginning", async () => {
    const missing = "entries before it are missing";
    expect(await verdictAfter("DELETE FROM audit WHERE sequence = 1000")).toEqual(
      broken(1_001, missing, 999),
    );
    await connection.use((database) => database.run("DELETE FROM audit WHERE sequence = 1"));
    expect((await store.verifyAudit(signal)).problem).toEqual({ sequence: 2, what: missing });
  });

  test("shows entries that were swapped", async () => {
    const verdict = await verdictAfter(`
      UPDATE audit SET sequence = 100000 WHERE sequence = 5;
      UPDATE audit SET sequence = 5 WHERE sequence = 6;
      UPDATE audit SET sequence = 6 WHERE sequence = 100000;
    `);
    expect(verdict).toEqual(broken(5, "it does not continue from the entry before it"));
  });

  test("shows an entry that was put in", async () => {
    const verdict = await verdictAfter(`
      INSERT INTO audit SELECT 1201, at, actor_kind, actor_id, actor_name, address, request_id,
        action, subject_type, subject_id, account_id, before_fields, after_fields, digest, digest
        FROM audit WHERE sequence = 1200;
    `);
    expect(verdict).toEqual(broken(1_201, "it was changed"));
  });

  test("whose end was cut off shows by the last digest alone", async () => {
    const { lastDigest } = await store.verifyAudit(signal);
    const verdict = await verdictAfter("DELETE FROM audit WHERE sequence > 1100");
    expect(verdict).toEqual({ isIntact: true, entries: 1_100, problem: undefined });
    expect((await store.verifyAudit(signal)).lastDigest).not.toBe(lastDigest);
  });

  test("is not made by mistake: entries can be neither changed nor removed", async () => {
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

  test("what retention left may not be cut further by mistake", async () => {
    await store.prune({ audit: 11, keys: 0, access: 0, replies: 0 }, 5_000);
    const count = (database: Database): unknown =>
      database.query("SELECT count(*) AS entries FROM audit").get();
    expect(await connection.use(count)).toEqual({ entries: 1_190 });
    const cut = connection.use((database) => database.run("DELETE FROM audit WHERE sequence = 11"));
    expect(cut).rejects.toThrow("append-only");
  });

  test("entries that retention removes while the chain is followed are no break of it", async () => {
    // Its turn comes between the first page and the second.
    const verifying = store.verifyAudit(signal);
    const pruning = connection.use((database) =>
      database.run(`
        INSERT INTO audit_anchor SELECT sequence, digest FROM audit WHERE sequence = 1100;
        DELETE FROM audit WHERE sequence <= 1100;
      `),
    );
    expect(await verifying).toMatchObject({ isIntact: true, entries: 100 + 100 });
    await pruning;
    expect(await store.verifyAudit(signal)).toMatchObject({ isIntact: true, entries: 100 });
  });

  test("is followed in short steps: other work has its turn between them", async () => {
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

  test("is followed no further once nobody waits for the answer", async () => {
    const leaving = new AbortController();
    const verifying = store.verifyAudit(leaving.signal);
    setImmediate(() => leaving.abort(new Error("the caller has left")));
    expect(verifying).rejects.toThrow("the caller has left");
    await verifying.catch(() => undefined);
  });
});
