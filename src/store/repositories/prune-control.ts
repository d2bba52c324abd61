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

/** Periods that ended long ago, and what was stored while its budget was removed. */
async function pruneSpend(queries: Queries, endedBefore: number, limit: number): Promise<number> {
  const names = sql`budget_id, period_id, process`;
  const spend = sql`
    delete from budget_spend where (${names}) in (
      select ${names} from budget_spend where ends_at < ${endedBefore}
        or budget_id not in (select id from budgets) limit ${limit})`;
  const alerts = sql`
    delete from budget_alerts where at < ${endedBefore} or budget_id not in (select id from budgets)`;
  const { numAffectedRows = 0n } = await spend.execute(queries);
  return Number(numAffectedRows + ((await alerts.execute(queries)).numAffectedRows ?? 0n));
}

async function pruneRemovals(queries: Queries, limit: number): Promise<number> {
  const epochs = queries.selectFrom("removedKeys").select("changedEpoch");
  const newest = epochs.orderBy("changedEpoch", "desc").limit(1).offset(removalsKept);
  const old = epochs.where("changedEpoch", "<=", newest).orderBy("changedEpoch").limit(limit);
  const removal = queries.deleteFrom("removedKeys").where("changedEpoch", "in", old);
  return Number((await removal.executeTakeFirst()).numDeletedRows);
}
