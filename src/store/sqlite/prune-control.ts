import type { Database } from "bun:sqlite";
import type { ControlRetention } from "../control-store.ts";
import type { SqliteConnection } from "./connection/connection.ts";
import { readAnchor, readHead, writeAnchor } from "./audit-ends.ts";
import type { AuditRow } from "./tables/audit-table.ts";
import { findProblem } from "./verify-audit.ts";

/** Who follows the keys asks every second; more notes of removals than these nobody missed. */
const removalsKept = 10_000;

/** Each removes at most a number of rows that are older than a time. */
export const pruneSteps: readonly PruneStep[] = [
  { age: "keys", sql: removeWhere("keys", "revoked_at < ?") },
  { age: "keys", sql: removeWhere("secrets", "expires_at < ?") },
  { age: "keys", sql: removeWhere("left_limit_scopes", "revoked_at < ?") },
  { age: "access", sql: removeWhere("sessions", "expires_at < ?") },
  { age: "access", sql: removeWhere("management_tokens", "expires_at < ?") },
  { age: "access", sql: removeWhere("management_tokens", "revoked_at < ?") },
  { age: "replies", sql: removeWhere("replies", "created_at < ?") },
];

interface PruneStep {
  readonly age: "keys" | "access" | "replies";
  /** Takes the time and the number. */
  readonly sql: string;
}

function removeWhere(table: string, condition: string): string {
  return `DELETE FROM ${table}
    WHERE rowid IN (SELECT rowid FROM ${table} WHERE ${condition} LIMIT ?)`;
}

/** Removes at most `limit` rows for each reason, each in a transaction of its own. */
export async function pruneControl(
  connection: SqliteConnection,
  limits: ControlRetention,
  limit: number,
): Promise<number> {
  let removed = 0;
  for (const { age, sql } of pruneSteps) {
    removed += await connection.use(
      (database) => database.query<unknown, [number, number]>(sql).run(limits[age], limit).changes,
    );
  }
  await connection.use(pruneRemovals);
  return removed + (await pruneAudit(connection, limits, limit));
}

function pruneRemovals(database: Database): void {
  database
    .query<unknown, [number]>(
      `DELETE FROM removed_keys WHERE changed_epoch <= (
         SELECT changed_epoch FROM removed_keys ORDER BY changed_epoch DESC LIMIT 1 OFFSET ?)`,
    )
    .run(removalsKept);
}

/**
 * Only from the beginning, up to the first entry that is young enough, and only what this installation
 * wrote: the times of other entries are anybody's, and what is left of a broken chain is evidence.
 */
function pruneAudit(
  connection: SqliteConnection,
  { audit: before, now }: ControlRetention,
  limit: number,
): Promise<number> {
  const { seals } = connection;
  return connection.transact((database) => {
    const first = readAnchor(database, seals);
    const head = readHead(database, seals);
    if (first === undefined || head === undefined) return Promise.resolve(0);
    const { plainUntil } = head;
    let last: Pick<AuditRow, "sequence" | "digest" | "at"> | undefined;
    for (const row of oldestEntries(database, limit)) {
      const isSound = findProblem(row, { last: last ?? first, plainUntil, seals }) === undefined;
      if (row.at >= before || !isSound) break;
      last = row;
    }
    if (last === undefined) return Promise.resolve(0);
    const { sequence, digest, at } = last;
    const removal = { at, removedAt: now, keptMs: now - before };
    writeAnchor(database, seals, { sequence, digest, removal });
    const { changes } = database
      .query<unknown, [number]>("DELETE FROM audit WHERE sequence <= ?")
      .run(sequence);
    return Promise.resolve(changes);
  });
}

function oldestEntries(database: Database, limit: number): readonly AuditRow[] {
  return database
    .query<AuditRow, [number]>("SELECT * FROM audit ORDER BY sequence LIMIT ?")
    .all(limit);
}
