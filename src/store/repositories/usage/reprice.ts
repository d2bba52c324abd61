import { sql } from "kysely";
import type { Peppers } from "../../../domain/keys/peppers.ts";
import { Calendar } from "../../../domain/money/calendar.ts";
import type { PriceTable } from "../../../domain/money/price.ts";
import { repriced } from "../../../domain/money/reprice.ts";
import type { UsageRecord } from "../../../domain/usage/usage.ts";
import type { CostStore, RepricedBatch, RepriceRequest } from "../../costs.ts";
import { chargeCalls, type StoredCharges } from "../budgets/charge-calls.ts";
import { nextBudgetEpoch } from "../budgets/spend.ts";
import { tableOf } from "../price-store.ts";
import { namesOf, rowsOf } from "../row.ts";
import type { Queries, SqlConnection, UsageRow } from "../tables.ts";
import { toRecord } from "./usage-row.ts";
import { readHorizons } from "./usage-store.ts";
import { endUserDigests } from "../../../domain/keys/pseudonyms.ts";
import { moveSums } from "./usage-sums.ts";

/** `connection`: of the lane of usage. */
export function costsIn(
  connection: Pick<SqlConnection, "change" | "read">,
  peppers: Peppers,
): CostStore {
  const terms = { calendar: new Calendar(), digestsOf: endUserDigests(peppers) };
  return {
    reprice: (request) => connection.change((queries) => repriceBatch(queries, request, terms)),
    noteRun: (run) =>
      connection.change(async (queries) => {
        const row = { ...run, isDelivered: 0 };
        await queries.insertInto("repriceRuns").values(row).execute();
      }),
    callsSince: async () => (await connection.read(readHorizons)).call,
  };
}

/** A call whose cost changes. */
interface Adjustment {
  readonly call: UsageRecord;
  /** Its cost until now; undefined: it had none. */
  readonly oldNano: number | undefined;
  readonly newNano: number;
}

/**
 * Prices the next calls of a time range again: notes what changes, and moves the sums and what was
 * spent under budgets. The rows keep their first price.
 */
async function repriceBatch(
  queries: Queries,
  request: RepriceRequest,
  terms: Pick<StoredCharges, "calendar" | "digestsOf">,
): Promise<RepricedBatch> {
  const epoch = request.isDryRun ? 0 : await nextBudgetEpoch(queries);
  const rows = await readRows(queries, request);
  await findTables(queries, rows, request.tables);
  const left = { notPriced: 0, notExplained: 0 };
  const adjustments: Adjustment[] = [];
  for (const row of rows) {
    const call = toRecord(row);
    const found = repricedBy(call, request);
    const oldNano = call.repricedNano ?? call.costNano;
    if (found === "not_priced") left.notPriced += 1;
    else if (found === "not_explained") left.notExplained += oldNano === 0 ? 0 : 1;
    else if (found !== oldNano) adjustments.push({ call, oldNano, newNano: found });
  }
  if (!request.isDryRun && adjustments.length > 0) {
    await noteAdjustments(queries, adjustments, request);
    const changes = adjustments.map(changeOf);
    await moveSums(queries, changes);
    await chargeCalls(queries, {
      calls: changes.map(({ call, ...change }) => ({ ...call, ...change, charge: undefined })),
      ...terms,
      epoch,
      now: request.at,
      areCorrections: true,
      openAt: request.closedPeriods ? undefined : request.at,
    });
  }
  const last = rows.at(-1);
  return {
    ...left,
    calls: rows.length,
    repriced: adjustments.length,
    oldNano: sumOf(adjustments, ({ oldNano }) => oldNano ?? 0),
    newNano: sumOf(adjustments, ({ newNano }) => newNano),
    end: rows.length < request.limit ? undefined : last && { at: last.startedAt, id: last.id },
  };
}

function repricedBy(call: UsageRecord, { table, tables }: RepriceRequest) {
  const { target = "", priceVersion } = call;
  const before = priceVersion === undefined ? undefined : tables.get(priceVersion);
  return repriced(call, before?.targets[target]?.price, table.targets[target]?.price);
}

/** What is added to sums, of which it already is a part. */
function changeOf({ call, oldNano, newNano }: Adjustment) {
  return {
    call,
    costNano: newNano - (oldNano ?? 0),
    unpricedCalls: oldNano === undefined ? -1 : 0,
  };
}

async function readRows(
  queries: Queries,
  { since, until, after, limit }: RepriceRequest,
): Promise<readonly UsageRow[]> {
  const start = after ?? { at: since, id: "" };
  const { rows } = await sql<UsageRow>`
    select * from usage
    where started_at >= ${start.at} and started_at < ${until}
      and (started_at, id) > (${start.at}, ${start.id})
    order by started_at, id limit ${limit}`.execute(queries);
  return rows;
}

/** Reads the tables of the rows' first prices that are not known yet. */
async function findTables(
  queries: Queries,
  rows: readonly UsageRow[],
  tables: Map<number, PriceTable>,
): Promise<void> {
  for (const version of new Set(rows.map(({ priceVersion }) => priceVersion))) {
    if (version === null || tables.has(version)) continue;
    const table = await tableOf(queries, version);
    if (table !== undefined) tables.set(version, table);
  }
}

const columns = {
  call_id: "text",
  account_id: "text",
  started_at: "bigint",
  old_nano: "bigint",
  new_nano: "bigint",
  price_version: "bigint",
  run: "text",
  at: "bigint",
} as const;

async function noteAdjustments(
  queries: Queries,
  adjustments: readonly Adjustment[],
  { table, run, at }: RepriceRequest,
): Promise<void> {
  const values = adjustments.map(({ call, oldNano, newNano }) => {
    const { id, accountId, startedAt } = call;
    return [id, accountId, startedAt, oldNano ?? null, newNano, table.version, run, at];
  });
  await sql`
    insert into cost_adjustments (${namesOf(columns)})
    select ${namesOf(columns)} from ${rowsOf(columns, values)}`.execute(queries);
  const changed = adjustments.map(({ call, newNano }) => [call.id, newNano]);
  await sql`
    update usage set repriced_nano = given.nano
    from ${rowsOf({ id: "text", nano: "bigint" }, changed)}
    where usage.id = given.id`.execute(queries);
}

function sumOf(adjustments: readonly Adjustment[], of: (adjustment: Adjustment) => number): bigint {
  return adjustments.reduce((sum, each) => sum + BigInt(of(each)), 0n);
}
