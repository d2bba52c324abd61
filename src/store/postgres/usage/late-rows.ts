import type { UsageRecord } from "../../../domain/usage/usage.ts";
import type { Queries } from "../../repositories/tables.ts";
import type { DroppedRows } from "../../store.ts";

interface SortedRows {
  readonly inTime: readonly UsageRecord[];
  readonly dropped: DroppedRows;
}

/** Leaves out calls of erased accounts, and of a time whose calls were removed. */
export async function findLateRows(
  queries: Queries,
  records: readonly UsageRecord[],
): Promise<SortedRows> {
  const erased = await findErased(queries, new Set(records.map(({ accountId }) => accountId)));
  const kept = records.filter(({ accountId }) => !erased.has(accountId));
  const horizon = await readCallHorizon(queries);
  // The table refuses an invalid time.
  const old = kept.filter(({ startedAt }) => startedAt < horizon);
  const stored = await findStored(
    queries,
    old.map(({ id }) => id),
  );
  return {
    inTime: kept.filter(({ startedAt }) => !(startedAt < horizon)),
    dropped: {
      ofErasedAccounts: records.length - kept.length,
      tooOld: old.filter(({ id }) => !stored.has(id)).length,
    },
  };
}

async function findErased(
  queries: Queries,
  accounts: ReadonlySet<string>,
): Promise<ReadonlySet<string>> {
  const query = queries
    .selectFrom("erasedAccounts")
    .select("id")
    .where("id", "in", [...accounts]);
  return new Set((await query.execute()).map(({ id }) => id));
}

async function readCallHorizon(queries: Queries): Promise<number> {
  const query = queries.selectFrom("usageHorizons").select("at").where("step", "=", "call");
  return (await query.executeTakeFirst())?.at ?? 0;
}

async function findStored(queries: Queries, ids: string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const query = queries.selectFrom("usage").select("id").where("id", "in", ids);
  return new Set((await query.execute()).map(({ id }) => id));
}
