import { type RawBuilder, sql } from "kysely";
import type { Clock } from "../../../domain/clock.ts";
import type { Peppers } from "../../../domain/keys/peppers.ts";
import { Calendar } from "../../../domain/money/calendar.ts";
import type { UsageRecord } from "../../../domain/usage/usage.ts";
import { RefusedRows } from "../../errors.ts";
import type { DroppedRows, ErasedEndUsers, UsageRetention, UsageStore } from "../../store.ts";
import type { Queries, SqlConnection } from "../tables.ts";
import { chargeCalls, findBudgets } from "../budgets/charge-calls.ts";
import { nextBudgetEpoch } from "../budgets/spend.ts";
import { namesOf, rowsOf } from "../row.ts";
import { type EndUserDigests, endUserDigests } from "../../../domain/keys/pseudonyms.ts";
import { eraseEndUsers, withoutErased } from "./erased-end-users.ts";
import { stepStart } from "./usage-range.ts";
import { callColumns, storable, toValues } from "./usage-row.ts";
import { addToSums } from "./usage-sums.ts";

/** Inserts rows of `callColumns` whose ids are not stored yet; returns the places of those. */
export type InsertNew = (
  queries: Queries,
  rows: readonly (readonly (string | number | null)[])[],
) => Promise<readonly number[]>;

export interface UsageStoreOptions {
  readonly clock: Pick<Clock, "now">;
  /** Whether the database refused a statement because of the values in it. */
  readonly isFaultOfData: (error: unknown) => boolean;
  /** Default: one statement for all rows. */
  readonly insertNew?: InsertNew | undefined;
  /** Keeps budgets from being made until the end of the transaction. Default: one runs at a time. */
  readonly keepBudgets?: ((queries: Queries) => Promise<undefined>) | undefined;
  /** Removes what is left of erased values in files. Default: nothing is. */
  readonly onErased?: (() => Promise<void>) | undefined;
  readonly peppers: Peppers;
  /** Called for calls that came too late to be stored. */
  readonly onDropped?: ((dropped: DroppedRows) => void) | undefined;
}

/** The ledger: calls, and their sums by hour and day. */
export class SqlUsageStore implements UsageStore {
  readonly #connection: Pick<SqlConnection, "change">;
  readonly #options: UsageStoreOptions;
  readonly #calendar = new Calendar();
  readonly #digestsOf: EndUserDigests;

  /** Changes of the connection must run one at a time. */
  constructor(connection: Pick<SqlConnection, "change">, options: UsageStoreOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#digestsOf = endUserDigests(options.peppers);
  }

  async insert(records: readonly UsageRecord[]): Promise<void> {
    if (records.length === 0) return;
    const {
      isFaultOfData,
      onDropped,
      clock,
      insertNew = insertAtOnce,
      keepBudgets,
    } = this.#options;
    try {
      const given = records.map(storable);
      const dropped = await this.#connection.change(async (queries) => {
        const rows = await withoutErased(queries, given, this.#digestsOf);
        const isUnder = (await findBudgets(queries, rows)).length > 0;
        const epoch = isUnder ? await nextBudgetEpoch(queries) : await keepBudgets?.(queries);
        const { calls, hoursSince, ...left } = await insertBatch(queries, rows, insertNew);
        if (calls.length === 0) return left;
        await addToSums(queries, calls, hoursSince);
        const terms = { calendar: this.#calendar, digestsOf: this.#digestsOf };
        await chargeCalls(queries, { calls, ...terms, epoch, now: clock.now() });
        return left;
      });
      if (dropped.ofErasedAccounts + dropped.tooOld > 0) onDropped?.(dropped);
    } catch (error) {
      if (!isFaultOfData(error)) throw error;
      throw new RefusedRows("the database rejects these calls", { cause: error });
    }
  }

  prune(retention: UsageRetention, limit: number): Promise<number> {
    return this.#connection.change((queries) => pruneUsage(queries, retention, limit));
  }

  erase(accountId: string, limit: number): Promise<number> {
    return this.#connection.change((queries) => eraseUsage(queries, accountId, limit));
  }

  async eraseEndUsers(erased: ErasedEndUsers): Promise<number> {
    const calls = await eraseEndUsers(this.#connection, erased, this.#digestsOf);
    await this.#options.onErased?.();
    return calls;
  }
}

/** A few statements for all of a batch, because each is a round trip. */
async function insertBatch(
  queries: Queries,
  records: readonly UsageRecord[],
  insertNew: InsertNew,
): Promise<DroppedRows & { calls: readonly UsageRecord[]; hoursSince: number }> {
  // Calls of erased accounts may still be on their way; they are not stored any more.
  const accounts = new Set(records.map(({ accountId }) => accountId));
  const erased = await findIds(queries, "erased_accounts", accounts);
  const { call: callsSince, hour: hoursSince } = await readHorizons(queries);
  const young = new Map<string, UsageRecord>();
  const old: UsageRecord[] = [];
  for (const record of records) {
    if (erased.has(record.accountId)) continue;
    // Whether a call of a time whose calls were removed is new cannot be told any more.
    if (record.startedAt < callsSince) old.push(record);
    else if (!young.has(record.id)) young.set(record.id, record);
  }
  const calls = [...young.values()];
  const places = calls.length === 0 ? [] : await insertNew(queries, calls.map(toValues));
  const stored = await findIds(queries, "usage", new Set(old.map(({ id }) => id)));
  return {
    /** Those that were not stored before. */
    calls: places.flatMap((place) => calls[place] ?? []),
    hoursSince,
    ofErasedAccounts: records.filter(({ accountId }) => erased.has(accountId)).length,
    tooOld: old.filter(({ id }) => !stored.has(id)).length,
  };
}

/** Which of these ids a table has. */
async function findIds(
  queries: Queries,
  table: "erased_accounts" | "usage",
  ids: ReadonlySet<string>,
): Promise<ReadonlySet<string>> {
  if (ids.size === 0) return ids;
  const wanted = rowsOf(
    { id: "text" },
    [...ids].map((id) => [id]),
  );
  const { rows } = await sql<{ id: string }>`
    select id from ${wanted} join ${sql.table(table)} using (id)`.execute(queries);
  return new Set(rows.map(({ id }) => id));
}

const insertAtOnce: InsertNew = async (queries, rows) => {
  const columns = namesOf(callColumns);
  const inserted = await sql<{ id: string }>`
    insert into usage (${columns}) select ${columns} from ${rowsOf(callColumns, rows)} where true
    on conflict (id) do nothing returning id`.execute(queries);
  const ids = new Set<unknown>(inserted.rows.map(({ id }) => id));
  return rows.flatMap(([id], place) => (ids.has(id) ? place : []));
};

/** The times before which calls and the sums of hours were removed. */
export async function readHorizons(
  queries: Queries,
): Promise<Readonly<Record<"call" | "hour", number>>> {
  const rows = await queries.selectFrom("usageHorizons").selectAll().execute();
  const of = (step: "call" | "hour"): number => rows.find((row) => row.step === step)?.at ?? 0;
  return { call: of("call"), hour: of("hour") };
}

/** Never moves backwards. */
async function moveHorizon(queries: Queries, step: "call" | "hour", at: number): Promise<void> {
  const update = queries.updateTable("usageHorizons").set({ at });
  await update.where("step", "=", step).where("at", "<", at).execute();
}

/** Removes at most `limit` rows past their retention, oldest first; returns how many. */
async function pruneUsage(
  queries: Queries,
  { calls, hours, days }: UsageRetention,
  limit: number,
): Promise<number> {
  let removed = await pruneCalls(queries, calls, limit);
  if (removed >= limit) return removed;
  const hoursBefore = stepStart(hours, "day");
  // Reports stop reading that range first, so they never show a part of it.
  await moveHorizon(queries, "hour", hoursBefore);
  removed += await removeSums(queries, oldSums("hour", hoursBefore), limit - removed);
  if (removed >= limit) return removed;
  // A day is kept as long as its calls and hours, which are found through it.
  const daysBefore = stepStart(Math.min(calls, hours, days), "day");
  return removed + (await removeSums(queries, oldSums("day", daysBefore), limit - removed));
}

async function pruneCalls(queries: Queries, before: number, limit: number): Promise<number> {
  const { rows } = await sql<{ startedAt: number }>`
    delete from usage where id in (
      select id from usage where started_at < ${before} order by started_at limit ${limit})
    returning started_at`.execute(queries);
  await sql`delete from cost_adjustments where started_at < ${before}`.execute(queries);
  await sql`delete from erased_end_users where at < ${before}`.execute(queries);
  const newest = rows.reduce((latest, { startedAt }) => Math.max(latest, startedAt), -1);
  await moveHorizon(queries, "call", newest + 1);
  return rows.length;
}

function oldSums(grain: "hour" | "day", before: number): RawBuilder<unknown> {
  return sql`grain = ${grain} and at < ${before} order by at`;
}

/** Removes at most `limit` rows of an account: its calls, then its sums, then its groups. */
async function eraseUsage(queries: Queries, accountId: string, limit: number): Promise<number> {
  const calls = await remove(
    queries,
    sql`delete from usage where id in (
      select id from usage where account_id = ${accountId} limit ${limit})`,
  );
  if (calls > 0) return calls;
  await sql`delete from cost_adjustments where account_id = ${accountId}`.execute(queries);
  const groups = sql`select id from usage_groups where account_id = ${accountId}`;
  const sums = await removeSums(queries, sql`group_id in (${groups})`, limit);
  if (sums > 0) return sums;
  return remove(queries, sql`delete from usage_groups where id in (${groups} limit ${limit})`);
}

function removeSums(queries: Queries, which: RawBuilder<unknown>, limit: number): Promise<number> {
  return remove(
    queries,
    sql`delete from usage_sums where (grain, at, group_id) in (
      select grain, at, group_id from usage_sums where ${which} limit ${limit})`,
  );
}

async function remove(queries: Queries, deletion: RawBuilder<unknown>): Promise<number> {
  return Number((await deletion.execute(queries)).numAffectedRows);
}
