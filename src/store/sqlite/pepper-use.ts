import type { Database } from "bun:sqlite";
import type { PepperUse } from "../control-store.ts";

interface CountRow {
  readonly pepper: string | null;
  readonly rows: number;
}

interface SinceRow {
  readonly pepper_since: number | null;
}

/** Counts what is live, by the pepper it was made under. */
export function countPepperUse(database: Database, now: number): PepperUse {
  const count = (sql: string, ...values: readonly number[]): ReadonlyMap<string, number> => {
    const rows = database.query<CountRow, number[]>(sql).all(...values);
    return new Map(rows.map(({ pepper, rows: found }) => [pepper ?? "", found]));
  };
  const since = readSince(database);
  const countBefore = (table: string, column: string): number =>
    database
      .query<{ rows: number }, [number]>(
        `SELECT count(*) AS rows FROM ${table} WHERE ${column} < ?`,
      )
      .get(since ?? 0)?.rows ?? 0;
  return {
    secrets: count(
      `SELECT secrets.pepper, count(*) AS rows FROM secrets JOIN keys ON keys.id = secrets.key_id
       WHERE keys.revoked_at IS NULL AND (secrets.expires_at IS NULL OR secrets.expires_at > ?)
       GROUP BY secrets.pepper`,
      now,
    ),
    tokens: count(
      `SELECT pepper, count(*) AS rows FROM management_tokens
       WHERE revoked_at IS NULL AND expires_at > ? GROUP BY pepper`,
      now,
    ),
    auditEntries: count("SELECT pepper, count(*) AS rows FROM audit GROUP BY pepper"),
    keptAnswers: countBefore("replies", "created_at") + countBefore("call_replies", "kept_at"),
    firstSince: since,
  };
}

function readSince(database: Database): number | undefined {
  const row = database.query<SinceRow, []>("SELECT pepper_since FROM installation").get();
  return row?.pepper_since ?? undefined;
}
