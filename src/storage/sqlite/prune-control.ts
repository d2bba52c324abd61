import type { Database } from "bun:sqlite";
import type { ControlRetention } from "../control-store.ts";
import type { SqliteConnection } from "./connection.ts";
import type { ChainLink } from "./tables/audit-table.ts";

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
  return removed + (await pruneAudit(connection, limits.audit, limit));
}

function pruneRemovals(database: Database): void {
  database
    .query<unknown, [number]>(
      `DELETE FROM removed_keys WHERE changed_epoch <= (
         SELECT changed_epoch FROM removed_keys ORDER BY changed_epoch DESC LIMIT 1 OFFSET ?)`,
    )
    .run(removalsKept);
}

/** Only from the beginning: up to the first entry that is young enough. */
function pruneAudit(connection: SqliteConnection, before: number, limit: number): Promise<number> {
  return connection.transact((database) => {
    const oldest = database
      .query<ChainLink & { readonly at: number }, [number]>(
        "SELECT sequence, digest, at FROM audit ORDER BY sequence LIMIT ?",
      )
      .all(limit);
    const firstKept = oldest.findIndex(({ at }) => at >= before);
    const anchor = oldest.at(firstKept === -1 ? -1 : firstKept - 1);
    if (anchor === undefined || firstKept === 0) return Promise.resolve(0);
    database.run("DELETE FROM audit_anchor");
    database
      .query<unknown, [number, string]>("INSERT INTO audit_anchor VALUES (?, ?)")
      .run(anchor.sequence, anchor.digest);
    const { changes } = database
      .query<unknown, [number]>("DELETE FROM audit WHERE sequence <= ?")
      .run(anchor.sequence);
    return Promise.resolve(changes);
  });
}
