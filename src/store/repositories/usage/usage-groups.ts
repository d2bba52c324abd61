import { sql } from "kysely";
import type { GroupDimension, UsageRank, UsageStep } from "../../../domain/usage/usage.ts";
import type { TotalsQuery } from "../../usage-reports.ts";
import { withRawRows } from "../session.ts";
import type { Queries, UsageRow, UsageSum } from "../tables.ts";
import { all, callColumnOf, callConditions, groupValueOf, sumConditions } from "./usage-filter.ts";
import { type RangePiece, stepLengthsMs, stepStart } from "./usage-range.ts";
import type { TimeSpan } from "./call-spans.ts";
import { addCall, addSum, columnOf, type CountedCall, counts, sumOfNone } from "./usage-sums.ts";

export interface SumQuestion extends Pick<TotalsQuery, "filter" | "by"> {
  /** The step of the sums; undefined: one sum of each group, at 0. */
  readonly step: UsageStep | undefined;
  /** If set, only these counts are needed. */
  readonly ranking?: UsageRank;
}

/** The counts that are added up to rank groups. */
export const rankedCounts = {
  calls: ["calls"],
  tokens: ["inputTokens", "outputTokens"],
  cost: ["costNano"],
} as const satisfies Readonly<Record<UsageRank, readonly (keyof UsageSum)[]>>;

/** The sums of one group, in one step of a series or in total. */
export interface GroupSum {
  readonly at: number;
  /** The values of the dimensions, in the order of the query; undefined: of several groups. */
  readonly values: readonly (string | number | null)[] | undefined;
  /** The same as text. */
  readonly name: string;
  readonly sum: UsageSum;
}

type DimensionValues = Readonly<Record<`group_${number}`, string | number | null>>;
type SumRow = Omit<UsageSum, "costNano"> &
  DimensionValues & { readonly step_at: number; readonly costNano: string };

/** Reads a piece of a range from the stored sums of hours or days. */
export async function readSums(
  queries: Queries,
  question: SumQuestion,
  { step: grain, since, until }: RangePiece,
): Promise<readonly GroupSum[]> {
  const { filter, by, step, ranking } = question;
  const isWhole = step === undefined || step === grain;
  const at = isWhole ? "sums.at" : `sums.at - sums.at % ${stepLengthsMs[step]}`;
  const dimensions = by.map((dimension, index) => {
    return `groups.${callColumnOf(dimension)} as group_${index}`;
  });
  const selected = [
    `${step === undefined ? "0" : at} as step_at`,
    ...dimensions,
    ...(ranking === undefined ? allSums : rankedCounts[ranking].map(sumOf)),
  ];
  const grouped = [step === undefined ? [] : ["1"], by.map((_, index) => `${index + 2}`)].flat();
  // `cross join` makes SQLite go from the sums of the time to their groups, not the other way round.
  const { rows } = await sql<SumRow>`
    select ${sql.raw(selected.join(", "))}
    from usage_sums as sums cross join usage_groups as groups
    where ${all([
      sql`groups.id = sums.group_id and grain = ${grain} and at >= ${since} and at < ${until}`,
      ...sumConditions(filter),
    ])}
    ${sql.raw(grouped.length === 0 ? "having count(*) > 0" : `group by ${grouped.join(", ")}`)}`.execute(
    withRawRows(queries),
  );
  return rows.map((row) => {
    const sum = sumOfNone();
    if (ranking === undefined) addSum(sum, { ...row, costNano: BigInt(row.costNano) });
    else if (ranking === "cost") sum.costNano = BigInt(row.costNano);
    else for (const name of rankedCounts[ranking]) sum[name] = row[name];
    return { ...groupOf(by, row), at: row.step_at, sum };
  });
}

/** Quoted, because PostgreSQL would make the name lower case. */
function sumOf(name: (typeof counts)[number] | "costNano"): string {
  const sum = `sum(${columnOf(name)})`;
  // As a text, because a number would not hold the cost of years.
  return `${name === "costNano" ? `cast(${sum} as text)` : sum} as "${name}"`;
}

const allSums = [
  ...counts.map(sumOf),
  sumOf("costNano"),
  "string_agg(durations, '') as durations",
  `string_agg(first_events, '') as "firstEvents"`,
];

type CallRow = Omit<CountedCall, "firstEventMs" | "costNano"> &
  DimensionValues &
  Pick<UsageRow, "startedAt" | "firstEventMs" | "costNano">;

/** As sums have it. */
const currentCost = "coalesce(repriced_nano, cost_nano)";

const countedColumns = [
  "startedAt",
  "outcome",
  "inputTokens",
  "outputTokens",
  "cachedInputTokens",
  "cacheWriteTokens",
  "costNano",
  "usageSource",
  "firstEventMs",
  "durationMs",
].map((name) => `${name === "costNano" ? currentCost : columnOf(name)} as "${name}"`);

/** Reads the single calls of a short range, each as a sum of its own. */
export async function readCallSums(
  queries: Queries,
  { filter, by, step }: SumQuestion,
  { since, until }: TimeSpan,
): Promise<readonly GroupSum[]> {
  const dimensions = by.map((dimension, index) => {
    return `${callColumnOf(dimension)} as group_${index}`;
  });
  const { rows } = await sql<CallRow>`
    select ${sql.raw([...countedColumns, ...dimensions].join(", "))} from usage
    where ${all([
      sql`started_at >= ${since} and started_at < ${until}`,
      ...callConditions(filter),
    ])}`.execute(withRawRows(queries));
  return rows.map((row) => {
    const sum = sumOfNone();
    const { firstEventMs, costNano } = row;
    addCall(sum, {
      ...row,
      firstEventMs: firstEventMs ?? undefined,
      costNano: costNano ?? undefined,
    });
    const at = step === undefined ? 0 : stepStart(row.startedAt, step);
    return { ...groupOf(by, row), at, sum };
  });
}

function groupOf(
  by: readonly GroupDimension[],
  row: DimensionValues,
): Pick<GroupSum, "values" | "name"> {
  // A group without a target has an empty one.
  const values = by.map((dimension, index) =>
    groupValueOf(dimension, row[`group_${index}`] || null),
  );
  return { values, name: JSON.stringify(values) };
}
