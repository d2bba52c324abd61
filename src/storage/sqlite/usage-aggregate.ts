import type { Database } from "bun:sqlite";
import type { TotalsQuery, UsageDimension, UsageStep } from "../usage-reports.ts";
import {
  type Condition,
  dimensionColumns,
  filteredDimensions,
  groupCondition,
  smallestDetail,
} from "./usage-filter.ts";
import { type FoldPlace, liesBefore, readFold } from "./usage-folds.ts";
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
    const detail = detailFor(this.#question, piece.step);
    const read = database.transaction(() => {
      const since = { at: piece.since, groupId: 0 };
      this.#addRows(database, { ...piece, since, detail });
      if (piece.step === "minute") return;
      // What is not part of these sums yet.
      const place = readFold(database, { step: piece.step, detail });
      const later = liesBefore(since, place) ? place : since;
      this.#addRows(database, { ...piece, since: later, step: "minute", detail: "full" });
    });
    read.deferred();
  }

  #addRows(database: Database, range: SumRange): void {
    if (range.since.at >= range.until) return;
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
      group = readGroup(database, { id, by: this.#question.by });
      this.#groups.set(id, group);
    }
    return group;
  }
}

function readGroup(
  database: Database,
  { id, by }: { readonly id: number; readonly by: readonly UsageDimension[] },
): UsageGroup {
  if (by.length === 0) return { values: [], name: "[]" };
  const row = database.query<GroupRow, [number]>("SELECT * FROM usage_groups WHERE id = ?").get(id);
  if (row === null) throw new Error("sums belong to no group");
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

interface SumRange {
  readonly step: UsageStep;
  readonly detail: Detail;
  readonly since: FoldPlace;
  readonly until: number;
}

function selectSums({ filter, by, step }: AggregateQuestion, range: SumRange): Condition {
  const { detail, since, until } = range;
  const condition = groupCondition(filter, detail);
  const at = step === undefined ? "0" : `at - at % ${stepLengthsMs[step]}`;
  const isTogether = by.length === 0;
  const sql = `
    SELECT ${at} AS step_at, ${isTogether ? togetherColumns : groupedColumns}
    FROM ${stepTables[range.step]}
    WHERE detail = ? AND (at, group_id) >= (?, ?) AND at < ?${condition.sql}
    ${isTogether ? "GROUP BY step_at" : ""}`;
  return { sql, values: [details[detail], since.at, since.groupId, until, ...condition.values] };
}

function detailFor(
  { filter, by }: Pick<AggregateQuestion, "filter" | "by">,
  step: UsageStep,
): Detail {
  const smallest = smallestDetail([...by, ...filteredDimensions(filter).map(([name]) => name)]);
  return stepDetails[step].includes(smallest) ? smallest : "full";
}
