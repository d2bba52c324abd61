import type { Database } from "bun:sqlite";
import {
  type Fold,
  type FoldPosition,
  folds,
  liesBefore,
} from "../../../repositories/usage/fold-positions.ts";
import { moveFold, readFolds } from "./usage-folds.ts";
import type { ColumnValue } from "../../../repositories/usage/usage-row.ts";
import { addToOld, compactSums } from "./usage-sum-rows.ts";
import {
  type Detail,
  details,
  stepLengthsMs,
  stepStart,
  stepTables,
} from "../../../repositories/usage/usage-steps.ts";

/**
 * How long minutes wait before they are folded into hours and days. Most calls end sooner; later
 * ones are added to each sum directly.
 */
const foldDelayMs = 300_000;

/** Most rows of minutes folded at once into one kind of sums. */
const rowsAtOnce = 250;

/** Appending makes latencies grow, so longer ones are compacted. */
const longLatencies = 500;

/** A backlog beyond this is too long. */
const longBacklogMs = 120_000;

/** The time up to which minutes may be folded after a call of this time. */
export function foldableUntil(newestCallAt: number): number {
  return stepStart(newestCallAt - foldDelayMs, "minute");
}

/** Folds a batch's share: enough to keep up, and to catch up. Needs a transaction. */
export function foldAfterBatch(database: Database, until: number, calls: number): void {
  const [, position] = furthestBehind(readFolds(database));
  const isBehind = until - position.at > longBacklogMs;
  // A call adds at most one row of a minute, which is written once for each kind of sums.
  const rowsPerCall = isBehind ? 2 * folds.length : 2;
  foldSome(database, until, rowsPerCall * calls + rowsAtOnce);
}

/** Folds all minutes up to a time. Needs a transaction. */
export function foldMinutes(database: Database, until: number): void {
  foldSome(database, until, Number.POSITIVE_INFINITY);
}

/** Folds all minutes. Needs a transaction. */
export function foldAllMinutes(database: Database): void {
  const newest = database
    .query<{ at: number | null }, []>(
      `SELECT max(at) AS at FROM usage_minutes WHERE detail = ${details.full}`,
    )
    .get();
  if (typeof newest?.at === "number") foldMinutes(database, newest.at + stepLengthsMs.minute);
}

/**
 * Folds minutes into hours and days, oldest first, until about so many rows are written. Writing
 * hours and days once a minute instead of with every batch makes calls cheap to count, and small
 * portions keep transactions short. Needs a transaction.
 */
function foldSome(database: Database, until: number, rows: number): void {
  const positions = new Map(readFolds(database));
  for (let left = rows; left > 0;) {
    const [fold, position] = furthestBehind(positions);
    if (position.at >= until) return;
    const { next, written } = foldRows(database, { fold, position, until });
    positions.set(fold, next);
    left -= written + 1;
  }
}

function furthestBehind(positions: ReadonlyMap<Fold, FoldPosition>): readonly [Fold, FoldPosition] {
  const [first, ...rest] = positions;
  if (first === undefined) throw new Error("nothing is made of minutes");
  return rest.reduce((least, entry) => (liesBefore(entry[1], least[1]) ? entry : least), first);
}

interface FoldStep {
  readonly fold: Fold;
  readonly position: FoldPosition;
  readonly until: number;
}

function foldRows(database: Database, { fold, position, until }: FoldStep): FoldedRows {
  const first = findRow(database, position, until);
  const next = first === undefined ? { at: until, groupId: 0 } : findEnd(database, first);
  const written = first === undefined ? 0 : addRows(database, fold, { first, next });
  moveFold(database, fold, next);
  return { next, written };
}

interface FoldedRows {
  /** The position of the next rows. */
  readonly next: FoldPosition;
  readonly written: number;
}

function findRow(
  database: Database,
  position: FoldPosition,
  until: number,
): FoldPosition | undefined {
  const row = database
    .query<FoldPosition, ColumnValue[]>(
      `SELECT at, group_id AS groupId FROM usage_minutes
       WHERE detail = ? AND (at, group_id) >= (?, ?) AND at < ? ORDER BY at, group_id LIMIT 1`,
    )
    .get(details.full, position.at, position.groupId, until);
  return row ?? undefined;
}

/** The position after the next rows, in the same minute or the next one. */
function findEnd(database: Database, { at, groupId }: FoldPosition): FoldPosition {
  const row = database
    .query<FoldPosition, ColumnValue[]>(
      `SELECT at, group_id AS groupId FROM usage_minutes
       WHERE detail = ? AND at = ? AND group_id >= ? ORDER BY group_id LIMIT 1 OFFSET ${rowsAtOnce}`,
    )
    .get(details.full, at, groupId);
  return row ?? { at: at + stepLengthsMs.minute, groupId: 0 };
}

interface RowRange {
  readonly first: FoldPosition;
  /** Excluded. */
  readonly next: FoldPosition;
}

function addRows(database: Database, { step, detail }: Fold, { first, next }: RowRange): number {
  const at = stepStart(first.at, step);
  const isLastOfMinute = next.groupId === 0;
  const end = isLastOfMinute ? Number.MAX_SAFE_INTEGER : next.groupId;
  const { changes } = database
    .query<unknown, ColumnValue[]>(foldInto(stepTables[step], groupColumns[detail]))
    .run(details[detail], at, details.full, first.at, first.groupId, end);
  const groups = detail === "full" ? { since: first.groupId, until: end } : allGroups;
  if (detail === "full" || isLastOfMinute) {
    compactSums(database, { step, detail, at, groups, length: longLatencies });
  }
  return changes;
}

const allGroups = { since: 0, until: Number.MAX_SAFE_INTEGER };

const groupColumns: Readonly<Record<Detail, string>> = {
  full: "id",
  key: "key_group_id",
  model: "model_group_id",
  route: "route_group_id",
};

function foldInto(table: string, groupColumn: string): string {
  return `
    INSERT INTO ${table}
    SELECT ?, ?, groups.${groupColumn}, sum(calls), sum(failed_calls), sum(abandoned_calls),
      sum(input_tokens), sum(output_tokens), sum(cached_input_tokens), sum(estimated_tokens),
      group_concat(durations, ''), group_concat(first_events, ''), sum(cache_write_tokens)
    FROM usage_minutes AS minutes CROSS JOIN usage_groups AS groups ON groups.id = group_id
    WHERE minutes.detail = ? AND at = ? AND group_id >= ? AND group_id < ?
    GROUP BY groups.${groupColumn} ${addToOld}`;
}
