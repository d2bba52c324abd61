import type { Database } from "bun:sqlite";
import type { TotalsQuery, UsageDimension, UsageStep } from "../usage-reports.ts";
import {
  type Condition,
  dimensionColumns,
  filteredDimensions,
  groupCondition,
  smallestDetail,
} from "./usage-filter.ts";
import { readMark } from "./usage-marks.ts";
import type { RangePiece } from "./usage-range.ts";
import type { ColumnValue } from "./usage-row.ts";
import { type Detail, details, stepDetails, stepLengthsMs, stepTables } from "./usage-steps.ts";
import { addSum, type UsageSum } from "./usage-sums.ts";

/** Steps that are read at once; the event loop goes on between. */
const stepsAtOnce: Readonly<Record<UsageStep, { readonly full: number; readonly few: number }>> = {
  minute: { full: 20, few: 20 },
  hour: { full: 3, few: 72 },
  day: { full: 1, few: 31 },
};

/** Cuts pieces so that none holds up the event loop for long. */
export function cutPieces(
  pieces: readonly RangePiece[],
  question: AggregateQuestion,
): RangePiece[] {
  return pieces.flatMap((piece) => {
    const size = detailFor(question, piece.step) === "full" ? "full" : "few";
    const lengthMs = stepsAtOnce[piece.step][size] * stepLengthsMs[piece.step];
    const parts: RangePiece[] = [];
    for (let since = piece.since; since < piece.until; since += lengthMs) {
      parts.push({ ...piece, since, until: Math.min(piece.until, since + lengthMs) });
    }
    return parts;
  });
}

/** The values of the dimensions of a group, in the order that was asked for. */
export type GroupValues = readonly (string | number | null)[];

/** Sums of one group, in one step of a series or in all. */
export interface GroupSum extends UsageSum {
  /** Of the group: its values as text. */
  readonly name: string;
  readonly values: GroupValues;
  readonly at: number;
}

export interface AggregateQuestion extends Pick<TotalsQuery, "filter" | "by"> {
  /** Of the points; undefined: all in one, at 0. */
  readonly step: UsageStep | undefined;
}

/** Dimensions that were not asked for are missing. */
interface AggregateRow extends UsageSum {
  readonly step_at: number;
  readonly environment: string;
  readonly account_id: string;
  readonly application_id: string;
  readonly key_id: string;
  readonly model: string;
  readonly target: string;
  readonly status: number;
  readonly capacity_class: string;
}

/** Adds the sums of a piece to those of the pieces before. */
export function addPiece(
  database: Database,
  { question, piece }: { readonly question: AggregateQuestion; readonly piece: RangePiece },
  sums: Map<string, GroupSum>,
): void {
  const read = database.transaction(() => {
    addRows(database, { question, piece }, sums);
    const folded = readMark(database, "folded");
    if (piece.step === "minute" || piece.until <= folded) return;
    const since = Math.max(piece.since, folded);
    addRows(database, { question, piece: { ...piece, step: "minute", since } }, sums);
  });
  read.deferred();
}

function addRows(
  database: Database,
  { question, piece }: { readonly question: AggregateQuestion; readonly piece: RangePiece },
  sums: Map<string, GroupSum>,
): void {
  const { sql, values } = aggregate(question, piece);
  for (const row of database.query<AggregateRow, ColumnValue[]>(sql).iterate(...values)) {
    const values = question.by.map((dimension) => valueOf(row, dimension));
    const name = JSON.stringify(values);
    const place = `${row.step_at} ${name}`;
    const known = sums.get(place);
    if (known === undefined) sums.set(place, { ...row, at: row.step_at, values, name });
    else addSum(known, row);
  }
}

function valueOf(row: AggregateRow, dimension: UsageDimension): string | number | null {
  const value = row[dimensionColumns[dimension]];
  return dimension === "target" && value === "" ? null : value;
}

function aggregate({ filter, by, step }: AggregateQuestion, piece: RangePiece): Condition {
  const detail = detailFor({ filter, by }, piece.step);
  const condition = groupCondition(filter, detail);
  const at = step === undefined ? "0" : `at - at % ${stepLengthsMs[step]}`;
  const columns = by.map((dimension) => `, ${dimensionColumns[dimension]}`).join("");
  // CROSS: SQLite keeps to this order, which goes along the primary key.
  const groups = by.length === 0 ? "" : "CROSS JOIN usage_groups ON usage_groups.id = group_id";
  const sql = `
    SELECT ${at} AS step_at${columns}, sum(calls) AS calls, sum(failed_calls) AS failedCalls,
      sum(abandoned_calls) AS abandonedCalls, sum(input_tokens) AS inputTokens,
      sum(output_tokens) AS outputTokens, sum(cached_input_tokens) AS cachedInputTokens,
      sum(estimated_tokens) AS estimatedTokens, group_concat(durations, '') AS durations,
      group_concat(first_events, '') AS firstEvents
    FROM ${stepTables[piece.step]} AS sums ${groups}
    WHERE sums.detail = ? AND at >= ? AND at < ?${condition.sql}
    GROUP BY step_at${columns}`;
  return { sql, values: [details[detail], piece.since, piece.until, ...condition.values] };
}

function detailFor(
  { filter, by }: Pick<AggregateQuestion, "filter" | "by">,
  step: UsageStep,
): Detail {
  const smallest = smallestDetail([...by, ...filteredDimensions(filter).map(([name]) => name)]);
  return stepDetails[step].includes(smallest) ? smallest : "full";
}
