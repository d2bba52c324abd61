import type { Database } from "bun:sqlite";
import type { UsageDimension, UsageStep } from "../../../domain/usage/usage-report.ts";
import type { TotalsQuery } from "../../usage-reports.ts";
import {
  type Condition,
  dimensionColumns,
  filteredDimensions,
  groupCondition,
  smallestDetail,
} from "./usage-filter.ts";
import { type FoldPlace, liesBefore, readFold } from "./rollup/usage-folds.ts";
import type { RangePiece } from "./usage-range.ts";
import type { ColumnValue } from "./usage-row.ts";
import { type Detail, details, stepDetails, stepLengthsMs, stepTables } from "./usage-steps.ts";
import { addSum, type UsageSum } from "./rollup/usage-sums.ts";

/** Steps that are read at once; the event loop goes on between. */
const stepsAtOnce: Readonly<Record<UsageStep, { readonly full: number; readonly few: number }>> = {
  minute: { full: 10, few: 10 },
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

/** What the calls of a group have in common. */
export interface UsageGroup {
  /** The values of the dimensions, in the order that was asked for. */
  readonly values: readonly (string | number | null)[];
  /** The same as text. */
  readonly name: string;
}

/** Sums of one group, in one step of a series or in all. */
export interface GroupSum {
  readonly group: UsageGroup;
  readonly at: number;
  readonly sum: UsageSum;
}

export interface AggregateQuestion extends Pick<TotalsQuery, "filter" | "by"> {
  /** Of the points; undefined: all in one, at 0. */
  readonly step: UsageStep | undefined;
  /** Of all that fits the filter, only these groups; undefined: all of them. */
  readonly groupIds?: readonly number[] | undefined;
}

interface AggregateRow extends UsageSum {
  readonly step_at: number;
  /** 0: of all groups together. */
  readonly group_id: number;
}

interface GroupRow {
  readonly environment: string;
  readonly account_id: string;
  readonly application_id: string;
  readonly key_id: string;
  readonly model: string;
  readonly target: string;
  readonly status: number;
  readonly capacity_class: string;
}

/** Adds up the sums of pieces. Grouping is quicker here than in SQLite, which would sort by names. */
export class UsageAggregate {
  readonly #question: AggregateQuestion;
  readonly #groups = new Map<number, UsageGroup>();
  /** By time, then by name. */
  readonly #sums = new Map<number, Map<string, GroupSum>>();

  constructor(question: AggregateQuestion) {
    this.#question = question;
  }

  get sums(): GroupSum[] {
    return [...this.#sums.values()].flatMap((ofStep) => [...ofStep.values()]);
  }

  addPiece(database: Database, piece: RangePiece): void {
    const read = database.transaction(() => {
      for (const range of rangesOf(database, this.#question, piece)) {
        this.#addRows(database, range);
      }
    });
    read.deferred();
  }

  #addRows(database: Database, range: SumRange): void {
    const { sql, values } = selectSums(this.#question, range);
    for (const row of database.query<AggregateRow, ColumnValue[]>(sql).all(...values)) {
      const group = this.#groupOf(database, row.group_id);
      let ofStep = this.#sums.get(row.step_at);
      if (ofStep === undefined) {
        ofStep = new Map();
        this.#sums.set(row.step_at, ofStep);
      }
      const known = ofStep.get(group.name);
      if (known !== undefined) addSum(known.sum, row);
      else ofStep.set(group.name, { group, at: row.step_at, sum: row });
    }
  }

  #groupOf(database: Database, id: number): UsageGroup {
    let group = this.#groups.get(id);
    if (group === undefined) {
      group = findGroup(database, { id, by: this.#question.by });
      if (group === undefined) throw new Error("sums belong to no group");
      this.#groups.set(id, group);
    }
    return group;
  }
}

/** Where the sums of a piece are. In a transaction. */
export function rangesOf(
  database: Database,
  question: AggregateQuestion,
  piece: RangePiece,
): readonly SumRange[] {
  const { step, until } = piece;
  const detail = detailFor(question, step);
  const since = { at: piece.since, groupId: 0 };
  const ranges: SumRange[] = [{ step, until, since, detail }];
  if (step !== "minute") {
    // What is not part of these sums yet.
    const place = readFold(database, { step, detail });
    const later = liesBefore(since, place) ? place : since;
    ranges.push({ step: "minute", until, since: later, detail: "full" });
  }
  return ranges.filter((range) => range.since.at < until);
}

/** Undefined when it was erased. */
export function findGroup(
  database: Database,
  { id, by }: { readonly id: number; readonly by: readonly UsageDimension[] },
): UsageGroup | undefined {
  if (by.length === 0) return { values: [], name: "[]" };
  const row = database.query<GroupRow, [number]>("SELECT * FROM usage_groups WHERE id = ?").get(id);
  if (row === null) return undefined;
  const values = by.map((dimension) => {
    const value = row[dimensionColumns[dimension]];
    return dimension === "target" && value === "" ? null : value;
  });
  return { values, name: JSON.stringify(values) };
}

const sumColumns = [
  ["calls", "calls"],
  ["failed_calls", "failedCalls"],
  ["abandoned_calls", "abandonedCalls"],
  ["input_tokens", "inputTokens"],
  ["output_tokens", "outputTokens"],
  ["cached_input_tokens", "cachedInputTokens"],
  ["cache_write_tokens", "cacheWriteTokens"],
  ["estimated_tokens", "estimatedTokens"],
] as const;

const groupedColumns = [
  "group_id",
  ...sumColumns.map(([column, name]) => `${column} AS ${name}`),
  "durations",
  "first_events AS firstEvents",
].join(", ");

const togetherColumns = [
  "0 AS group_id",
  ...sumColumns.map(([column, name]) => `sum(${column}) AS ${name}`),
  "group_concat(durations, '') AS durations",
  "group_concat(first_events, '') AS firstEvents",
].join(", ");

export interface SumRange {
  readonly step: UsageStep;
  readonly detail: Detail;
  readonly since: FoldPlace;
  readonly until: number;
}

function selectSums({ filter, by, step, groupIds }: AggregateQuestion, range: SumRange): Condition {
  const condition = rangeCondition({ filter, groupIds }, range);
  const at = step === undefined ? "0" : `at - at % ${stepLengthsMs[step]}`;
  const isTogether = by.length === 0;
  const sql = `
    SELECT ${at} AS step_at, ${isTogether ? togetherColumns : groupedColumns}
    FROM ${stepTables[range.step]}
    WHERE ${condition.sql}
    ${isTogether ? "GROUP BY step_at" : ""}`;
  return { sql, values: condition.values };
}

/** The condition that a sum is of a range and fits what is asked for. */
export function rangeCondition(
  { filter, groupIds }: Pick<AggregateQuestion, "filter" | "groupIds">,
  { detail, since, until }: SumRange,
): Condition {
  const condition = groupCondition(filter, detail);
  const named = groupIds === undefined ? "" : " AND group_id IN (SELECT value FROM json_each(?))";
  return {
    sql: `detail = ? AND (at, group_id) >= (?, ?) AND at < ?${condition.sql}${named}`,
    values: [
      details[detail],
      since.at,
      since.groupId,
      until,
      ...condition.values,
      ...(groupIds === undefined ? [] : [JSON.stringify(groupIds)]),
    ],
  };
}

function detailFor(
  { filter, by }: Pick<AggregateQuestion, "filter" | "by">,
  step: UsageStep,
): Detail {
  const smallest = smallestDetail([...by, ...filteredDimensions(filter).map(([name]) => name)]);
  return stepDetails[step].includes(smallest) ? smallest : "full";
}
