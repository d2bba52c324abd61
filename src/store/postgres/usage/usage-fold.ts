import { type RawBuilder, sql } from "kysely";
import type { Queries } from "../../repositories/tables.ts";
import {
  type Fold,
  type FoldPosition,
  type FoldPositions,
  folds,
} from "../../repositories/usage/fold-positions.ts";
import {
  type Detail,
  details,
  stepLengthsMs,
  stepStart,
} from "../../repositories/usage/usage-steps.ts";
import { addRows, countColumns, latencyColumns } from "./usage-sum-rows.ts";

/** How long minutes wait; later calls are added to each sum directly. */
const foldDelayMs = 300_000;

/** Most time folded at once, which keeps transactions short. */
const spanMs = 10 * stepLengthsMs.minute;

/** The time up to which minutes may be folded after a call of this time. */
export function foldableUntil(newestCallAt: number): number {
  return stepStart(newestCallAt - foldDelayMs, "minute");
}

export async function readFolds(queries: Queries): Promise<FoldPositions> {
  const rows = await queries.selectFrom("usageFolds").selectAll().execute();
  return new Map(
    folds.map((fold) => {
      const row = rows.find(
        ({ step, detail }) => step === fold.step && detail === details[fold.detail],
      );
      return [fold, { at: row?.at ?? 0, groupId: row?.groupId ?? 0 }];
    }),
  );
}

/** Folds one span of minutes into hours and days; returns whether there may be more. */
export async function foldSome(queries: Queries, until: number): Promise<boolean> {
  const positions = await readFolds(queries);
  const position = Math.min(...[...positions.values()].map(({ at }) => at));
  if (position >= until) return false;
  const first = await findMinute(queries, position, until);
  const end = first === undefined ? until : Math.min(until, first + spanMs);
  for (const [fold, { at }] of positions) {
    if (at >= end) continue;
    if (first !== undefined) await addMinutes(queries, fold, { since: at, until: end });
    await moveFold(queries, fold, { at: end, groupId: 0 });
  }
  return first !== undefined;
}

export async function foldMinutes(queries: Queries, until: number): Promise<void> {
  while (await foldSome(queries, until));
}

export async function foldAllMinutes(queries: Queries): Promise<void> {
  const { rows } = await sql<{ at: number | null }>`
    select max(at) as at from usage_minutes where detail = ${details.full}`.execute(queries);
  const newest = rows[0]?.at ?? undefined;
  if (newest !== undefined) await foldMinutes(queries, newest + stepLengthsMs.minute);
}

async function findMinute(
  queries: Queries,
  since: number,
  until: number,
): Promise<number | undefined> {
  const { rows } = await sql<{ at: number | null }>`
    select min(at) as at from usage_minutes
    where detail = ${details.full} and at >= ${since} and at < ${until}`.execute(queries);
  return rows[0]?.at ?? undefined;
}

const groupColumns: Readonly<Record<Detail, string>> = {
  full: "id",
  key: "key_group_id",
  model: "model_group_id",
  route: "route_group_id",
};

async function addMinutes(
  queries: Queries,
  { step, detail }: Fold,
  { since, until }: { readonly since: number; readonly until: number },
): Promise<void> {
  const group = sql.ref(`groups.${groupColumns[detail]}`);
  const start = sql.raw(`at - at % ${stepLengthsMs[step]}`);
  const selected: RawBuilder<unknown> = sql`
    select ${sql.lit(details[detail])}::smallint, ${start}, ${group}, ${sql.raw(summed)}
    from usage_minutes as minutes join usage_groups as groups on groups.id = minutes.group_id
    where minutes.detail = ${details.full} and at >= ${since} and at < ${until}
    group by 2, 3`;
  await addRows(queries, step, selected);
}

const summed = [
  ...countColumns.map((column) => `sum(${column})`),
  ...latencyColumns.map((column) => `string_agg(${column}, '')`),
].join(", ");

async function moveFold(
  queries: Queries,
  { step, detail }: Fold,
  position: FoldPosition,
): Promise<void> {
  const update = queries.updateTable("usageFolds").set({ ...position });
  await update.where("step", "=", step).where("detail", "=", details[detail]).execute();
}
