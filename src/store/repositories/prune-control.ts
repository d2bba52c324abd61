import { sql } from "kysely";
import type { ControlRetention } from "../control-store.ts";
import { pruneAudit } from "./audit.ts";
import type { Queries, SqlConnection } from "./tables.ts";

/** How many records of removed keys are kept; key rings, which load every second, need few. */
const removalsKept = 10_000;

/** Each removes at most a number of rows older than a time. */
const pruneSteps = [
  { age: "keys", table: "keys", id: "id", time: "revokedAt" },
  { age: "keys", table: "secrets", id: "publicId", time: "expiresAt" },
  { age: "keys", table: "leftLimitScopes", id: "keyId", time: "revokedAt" },
  { age: "access", table: "sessions", id: "id", time: "expiresAt" },
  { age: "access", table: "signInLinks", id: "userId", time: "expiresAt" },
  { age: "access", table: "managementTokens", id: "id", time: "expiresAt" },
  { age: "access", table: "managementTokens", id: "id", time: "revokedAt" },
  { age: "replies", table: "replies", id: "id", time: "createdAt" },
] as const;

/** Removes at most `limit` rows of each sort, each in its own transaction. */
export async function pruneControl(
  connection: SqlConnection,
  limits: ControlRetention,
  limit: number,
): Promise<number> {
  let removed = 0;
  for (const { age, table, id, time } of pruneSteps) {
    const old = sql`
      delete from ${sql.table(table)} where ${sql.ref(id)} in (
        select ${sql.ref(id)} from ${sql.table(table)}
        where ${sql.ref(time)} < ${limits[age]} limit ${limit})`;
    const { numAffectedRows } = await connection.change((queries) => old.execute(queries));
    removed += Number(numAffectedRows);
  }
  removed += await connection.change((queries) => pruneRemovals(queries, limit));
  removed += await connection.change((queries) => pruneSpend(queries, limits.keys, limit));
  return removed + (await pruneAudit(connection, limits.audit, limit));
}

/**
 * Periods that ended long ago, and what is left of budgets that went with their key: the few rows of all
 * budgets are read for that.
 */
async function pruneSpend(queries: Queries, endedBefore: number, limit: number): Promise<number> {
  const ofNone = sql`budget_id not in (select id from budgets)`;
  const steps = [
    ["budget_spend", sql`budget_id, period_id, end_user, process`, sql`ends_at < ${endedBefore}`],
    ["budget_spend", sql`budget_id, period_id, end_user, process`, ofNone],
    [
      "budget_alerts",
      sql`budget_id, period_id, threshold, call_sequence`,
      sql`at < ${endedBefore}`,
    ],
    ["budget_alerts", sql`budget_id, period_id, threshold, call_sequence`, ofNone],
  ] as const;
  let removed = 0;
  for (const [table, key, isOld] of steps) {
    const { numAffectedRows } = await sql`
      delete from ${sql.table(table)} where (${key}) in (
        select ${key} from ${sql.table(table)} where ${isOld} limit ${limit})`.execute(queries);
    removed += Number(numAffectedRows);
  }
  return removed;
}

async function pruneRemovals(queries: Queries, limit: number): Promise<number> {
  const epochs = queries.selectFrom("removedKeys").select("changedEpoch");
  const newest = epochs.orderBy("changedEpoch", "desc").limit(1).offset(removalsKept);
  const old = epochs.where("changedEpoch", "<=", newest).orderBy("changedEpoch").limit(limit);
  const removal = queries.deleteFrom("removedKeys").where("changedEpoch", "in", old);
  return Number((await removal.executeTakeFirst()).numDeletedRows);
}
