import { nextTurn } from "../../domain/waiting/wait.ts";
import type { PepperUse } from "../control-store.ts";
import type { Queries, SqlConnection } from "./tables.ts";

/** Few enough that a page takes only some milliseconds. */
const pageSecrets = 2_000;

/** Counts live data by the pepper it was made under. */
export async function countPepperUse(connection: SqlConnection, now: number): Promise<PepperUse> {
  const secrets = new Map<string, number>();
  let after = "";
  for (let isMore = true; isMore;) {
    const page = await connection.read((queries) => readSecrets(queries, after));
    for (const { pepper, revokedAt, expiresAt } of page) {
      const isLive = revokedAt === null && (expiresAt === null || expiresAt > now);
      if (isLive) secrets.set(pepper ?? "", (secrets.get(pepper ?? "") ?? 0) + 1);
    }
    after = page.at(-1)?.publicId ?? "";
    isMore = page.length === pageSecrets;
    await nextTurn();
  }
  return connection.read((queries) => countOthers(queries, { now, secrets }));
}

function readSecrets(queries: Queries, after: string) {
  return queries
    .selectFrom("secrets")
    .innerJoin("keys", "keys.id", "secrets.keyId")
    .where("secrets.publicId", ">", after)
    .select(["secrets.publicId", "secrets.pepper", "secrets.expiresAt", "keys.revokedAt"])
    .orderBy("secrets.publicId")
    .limit(pageSecrets)
    .execute();
}

/** Tokens and answers are few. */
async function countOthers(
  queries: Queries,
  { now, secrets }: { readonly now: number; readonly secrets: ReadonlyMap<string, number> },
): Promise<PepperUse> {
  const marks = await queries.selectFrom("installation").select("pepperSince").executeTakeFirst();
  const since = marks?.pepperSince ?? undefined;
  const tokens = await queries
    .selectFrom("managementTokens")
    .where("revokedAt", "is", null)
    .where("expiresAt", ">", now)
    .select((eb) => ["pepper", eb.fn.countAll<number>().as("rows")])
    .groupBy("pepper")
    .execute();
  const replies = await queries
    .selectFrom("replies")
    .select((eb) => eb.fn.countAll<number>().as("rows"))
    .where("createdAt", "<", since ?? 0)
    .executeTakeFirstOrThrow();
  const callReplies = await queries
    .selectFrom("callReplies")
    .select((eb) => eb.fn.countAll<number>().as("rows"))
    .where("keptAt", "<", since ?? 0)
    .executeTakeFirstOrThrow();
  return {
    secrets,
    tokens: new Map(tokens.map(({ pepper, rows }) => [pepper ?? "", rows])),
    keptAnswers: replies.rows + callReplies.rows,
    firstSince: since,
  };
}
