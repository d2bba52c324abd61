import { sql } from "kysely";
import type { PepperUse } from "../control-store.ts";
import type { Queries } from "./tables.ts";

/** Counts live data by the pepper it was made under. */
export async function countPepperUse(queries: Queries, now: number): Promise<PepperUse> {
  const marks = await queries.selectFrom("installation").select("pepperSince").executeTakeFirst();
  const since = marks?.pepperSince ?? undefined;
  const secrets = await queries
    .selectFrom("secrets")
    .innerJoin("keys", "keys.id", "secrets.keyId")
    .where("keys.revokedAt", "is", null)
    .where((eb) => eb.or([eb("secrets.expiresAt", "is", null), eb("secrets.expiresAt", ">", now)]))
    .select((eb) => ["secrets.pepper", eb.fn.countAll<number>().as("rows")])
    .groupBy("secrets.pepper")
    .execute();
  const tokens = await queries
    .selectFrom("managementTokens")
    .where("revokedAt", "is", null)
    .where("expiresAt", ">", now)
    .select((eb) => ["pepper", eb.fn.countAll<number>().as("rows")])
    .groupBy("pepper")
    .execute();
  const kept = await sql<{ rows: number }>`
    select (select count(*) from replies where created_at < ${since ?? 0})
      + (select count(*) from call_replies where kept_at < ${since ?? 0}) as rows`.execute(queries);
  return {
    secrets: new Map(secrets.map(({ pepper, rows }) => [pepper ?? "", rows])),
    tokens: new Map(tokens.map(({ pepper, rows }) => [pepper ?? "", rows])),
    keptAnswers: kept.rows[0]?.rows ?? 0,
    firstSince: since,
  };
}
