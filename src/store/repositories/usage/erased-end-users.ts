import { sql } from "kysely";
import type { EndUserDigests } from "../../../domain/keys/pseudonyms.ts";
import type { UsageRecord } from "../../../domain/usage/usage.ts";
import { nextTurn } from "../../../domain/waiting/wait.ts";
import type { ErasedEndUsers } from "../../store.ts";
import { rowsOf } from "../row.ts";
import { nextBudgetEpoch } from "../budgets/spend.ts";
import type { Queries, SqlConnection } from "../tables.ts";
import { latestCalls, type TimeSpan } from "./call-spans.ts";
import { all, callConditions } from "./usage-filter.ts";

/** Takes end users out of stored calls, newest first, and notes them for calls that come later. */
export async function eraseEndUsers(
  connection: Pick<SqlConnection, "change">,
  erased: ErasedEndUsers,
  digestsOf: EndUserDigests,
): Promise<number> {
  await connection.change((queries) => noteErased(queries, erased, digestsOf));
  let calls = 0;
  for (let until = erased.before; until > 0;) {
    await connection.change(async (queries) => {
      const span = await latestCalls(queries, { ...erased, since: 0, until });
      calls += await eraseIn(queries, erased, span);
      until = span.since;
    });
    await nextTurn();
  }
  return calls;
}

/** The calls without end users that were erased after they arrived. */
export async function withoutErased(
  queries: Queries,
  records: readonly UsageRecord[],
  digestsOf: EndUserDigests,
): Promise<readonly UsageRecord[]> {
  if (records.every(({ endUser }) => endUser === undefined)) return records;
  const any = await queries.selectFrom("erasedEndUsers").selectAll().limit(1).execute();
  if (any.length === 0) return records;
  const digests = records.map(digestsOf);
  const wanted = rowsOf(
    { digest: "text" },
    [...new Set(digests.flat())].map((digest) => [digest]),
  );
  const { rows } = await sql<{ digest: string; at: number }>`
    select digest, at from ${wanted} join erased_end_users using (digest)`.execute(queries);
  const erasedAt = new Map(rows.map(({ digest, at }) => [digest, at]));
  return records.map((record, place) => {
    const isErased = digests[place]?.some((of) => record.startedAt < (erasedAt.get(of) ?? 0));
    return isErased ? { ...record, endUser: undefined } : record;
  });
}

async function noteErased(
  queries: Queries,
  { accountId, endUsers, before }: ErasedEndUsers,
  digestsOf: EndUserDigests,
): Promise<void> {
  await nextBudgetEpoch(queries);
  for (const endUser of endUsers) {
    const digests = digestsOf({ accountId, endUser });
    const ofAccount = queries.selectFrom("budgets").select("id").where("accountId", "=", accountId);
    const spent = queries.deleteFrom("budgetSpend").where("budgetId", "in", ofAccount);
    await spent.where("endUser", "in", digests).execute();
    const [digest = ""] = digests;
    const insertion = queries.insertInto("erasedEndUsers").values({ digest, at: before });
    await insertion.onConflict((on) => on.column("digest").doUpdateSet({ at: before })).execute();
  }
}

async function eraseIn(
  queries: Queries,
  filter: ErasedEndUsers,
  { since, until }: TimeSpan,
): Promise<number> {
  const conditions = [
    sql`started_at >= ${since} and started_at < ${until}`,
    ...callConditions({ ...filter, since, until }),
  ];
  const { numAffectedRows } = await sql`
    update usage set end_user = null where ${all(conditions)}`.execute(queries);
  return Number(numAffectedRows);
}
