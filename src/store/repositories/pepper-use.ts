import { sql } from "kysely";
import type { PepperUse } from "../control-store.ts";
import type { Queries } from "./tables.ts";

interface Count {
  readonly pepper: string | null;
  readonly rows: number;
}

/** Counts live data by the pepper it was made under. */
export async function countPepperUse(queries: Queries, now: number): Promise<PepperUse> {
  const marks = await queries.selectFrom("installation").select("pepperSince").executeTakeFirst();
  const since = marks?.pepperSince ?? undefined;
  const secrets = await sql<Count>`
    select secrets.pepper, count(*) as rows from secrets join keys on keys.id = secrets.key_id
    where keys.revoked_at is null and (secrets.expires_at is null or secrets.expires_at > ${now})
    group by secrets.pepper`.execute(queries);
  const tokens = await sql<Count>`
    select pepper, count(*) as rows from management_tokens
    where revoked_at is null and expires_at > ${now} group by pepper`.execute(queries);
  const kept = await sql<{ rows: number }>`
    select (select count(*) from replies where created_at < ${since ?? 0})
      + (select count(*) from call_replies where kept_at < ${since ?? 0}) as rows`.execute(queries);
  return {
    secrets: new Map(secrets.rows.map(({ pepper, rows }) => [pepper ?? "", rows])),
    tokens: new Map(tokens.rows.map(({ pepper, rows }) => [pepper ?? "", rows])),
    keptAnswers: kept.rows[0]?.rows ?? 0,
    firstSince: since,
  };
}
