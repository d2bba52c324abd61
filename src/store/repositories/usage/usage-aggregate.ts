import { type Expression, sql, type SqlBool } from "kysely";
import type { UsageDimension, UsageStep } from "../../../domain/usage/usage-report.ts";
import type { TotalsQuery } from "../../usage-reports.ts";
import { withRawRows } from "../raw-rows.ts";
import type { Queries } from "../tables.ts";
import { type FoldPosition, liesBefore, readFold } from "./fold-positions.ts";
import {
  all,
  dimensionColumns,
  filteredDimensions,
  groupConditions,
  smallestDetail,
} from "./usage-filter.ts";
import type { RangePiece } from "./usage-range.ts";
import { type Detail, details, stepDetails, stepLengthsMs, stepTables } from "./usage-steps.ts";
import { addSum, type UsageSum } from "./usage-sum.ts";

/** Steps read at once; the event loop runs in between. */
const stepsAtOnce: Readonly<Record<UsageStep, { readonly full: number; readonly few: number }>> = {
  minute: { full: 10, few: 10 },
  hour: { full: 3, few: 72 },
  day: { full: 1, few: 31 },
};

/** Cuts pieces small enough not to block the event loop for long. */
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

/** The values that the calls of a group share. */
export interface UsageGroup {
  /** The values of the dimensions, in the order of the query. */
  readonly values: readonly (string | number | null)[];
  /** The same as text. */
  readonly name: string;
}

/** Sums of one group, in one step of a series or in total. */
export interface GroupSum {
  readonly group: UsageGroup;
  readonly at: number;
  readonly sum: UsageSum;
}

export interface AggregateQuestion extends Pick<TotalsQuery, "filter" | "by"> {
  /** The step of the points; undefined: one point, at 0. */
  readonly step: UsageStep | undefined;
  /** Only these of the matching groups; undefined: all. */
  readonly groupIds?: readonly number[] | undefined;
}

interface AggregateRow extends UsageSum {
  readonly step_at: number;
  /** 0: all groups together. */
  readonly group_id: number;
}

/** Adds up pieces. Grouping is faster here than in SQLite, which would sort by names. */
export class UsageAggregate {
  readonly #question: AggregateQuestion;
  readonly #groups = new Map<number, UsageGroup>();
  /** Points by time, then by name. */
  readonly #sums = new Map<number, Map<string, GroupSum>>();

  constructor(question: AggregateQuestion) {
    this.#question = question;
  }

  get sums(): GroupSum[] {
    return [...this.#sums.values()].flatMap((ofStep) => [...ofStep.values()]);
  }

  async addPiece(queries: Queries, piece: RangePiece): Promise<void> {
    for (const range of await rangesOf(queries, this.#question, piece)) {
      const { rows } = await selectSums(this.#question, range).execute(withRawRows(queries));
      await this.#nameGroups(queries, rows);
      for (const row of rows) this.#addRow(row);
    }
  }

  async #nameGroups(queries: Queries, rows: readonly AggregateRow[]): Promise<void> {
    const unknown = new Set(rows.map((row) => row.group_id).filter((id) => !this.#groups.has(id)));
    if (unknown.size === 0) return;
    const found = await findGroups(queries, { ids: [...unknown], by: this.#question.by });
    for (const [id, group] of found) this.#groups.set(id, group);
  }

  #addRow(row: AggregateRow): void {
    const group = this.#groups.get(row.group_id);
    if (group === undefined) throw new Error("sums belong to no group");
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

/** The tables with the sums of a piece. Needs a transaction. */
export async function rangesOf(
  queries: Queries,
  question: AggregateQuestion,
  piece: RangePiece,
): Promise<readonly SumRange[]> {
  const { step, until } = piece;
  const detail = detailFor(question, step);
  const since = { at: piece.since, groupId: 0 };
  const ranges: SumRange[] = [{ step, until, since, detail }];
  if (step !== "minute") {
    // Minutes that are not folded yet.
    const position = await readFold(queries, { step, detail });
    const later = liesBefore(since, position) ? position : since;
    ranges.push({ step: "minute", until, since: later, detail: "full" });
  }
  return ranges.filter((range) => range.since.at < until);
}

/** Skips erased accounts. */
export async function findGroups(
  queries: Queries,
  { ids, by }: { readonly ids: readonly number[]; readonly by: readonly UsageDimension[] },
): Promise<ReadonlyMap<number, UsageGroup>> {
  if (by.length === 0) return new Map(ids.map((id) => [id, { values: [], name: "[]" }]));
  const rows = await queries
    .selectFrom("usageGroups")
    .selectAll()
    .where(isOneOf("id", ids))
    .execute();
  const groups = rows.map((row) => {
    const values = by.map((dimension) => {
      const value = row[dimensionColumns[dimension]];
      return dimension === "target" && value === "" ? null : value;
    });
    return [row.id, { values, name: JSON.stringify(values) }] as const;
  });
  return new Map(groups);
}

/**
 * All values in one parameter, because a statement takes only so many: as keys of a JSON object,
 * which SQLite and PostgreSQL both read.
 */
function isOneOf(column: "id" | "group_id", ids: readonly number[]): Expression<boolean> {
  const names = JSON.stringify(Object.fromEntries(ids.map((id) => [id, 0])));
  return sql`${sql.ref(column)} in (select cast(key as bigint) from json_each(${names}))`;
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

// Quoted, because PostgreSQL would make the names lower case.
const groupedColumns = [
  "group_id",
  ...sumColumns.map(([column, name]) => `${column} as "${name}"`),
  "durations",
  'first_events as "firstEvents"',
].join(", ");

const togetherColumns = [
  "0 as group_id",
  ...sumColumns.map(([column, name]) => `sum(${column}) as "${name}"`),
  "string_agg(durations, '') as durations",
  `string_agg(first_events, '') as "firstEvents"`,
].join(", ");

export interface SumRange {
  readonly step: UsageStep;
  readonly detail: Detail;
  readonly since: FoldPosition;
  readonly until: number;
}

function selectSums({ filter, by, step, groupIds }: AggregateQuestion, range: SumRange) {
  const at = step === undefined ? "0" : `at - at % ${stepLengthsMs[step]}`;
  const isTogether = by.length === 0;
  return sql<AggregateRow>`
    select ${sql.raw(at)} as step_at, ${sql.raw(isTogether ? togetherColumns : groupedColumns)}
    from ${sql.table(stepTables[range.step])}
    where ${rangeCondition({ filter, groupIds }, range)}
    ${sql.raw(isTogether ? "group by step_at" : "")}`;
}

/** The condition that a sum is in a range and matches the query. */
export function rangeCondition(
  { filter, groupIds }: Pick<AggregateQuestion, "filter" | "groupIds">,
  { detail, since, until }: SumRange,
): Expression<SqlBool> {
  const { at, groupId } = since;
  return all([
    sql`detail = ${details[detail]} and (at, group_id) >= (${at}, ${groupId}) and at < ${until}`,
    ...groupConditions(filter, detail),
    ...(groupIds === undefined ? [] : [isOneOf("group_id", groupIds)]),
  ]);
}

function detailFor(
  { filter, by }: Pick<AggregateQuestion, "filter" | "by">,
  step: UsageStep,
): Detail {
  const smallest = smallestDetail([...by, ...filteredDimensions(filter).map(([name]) => name)]);
  return stepDetails[step].includes(smallest) ? smallest : "full";
}
