import type { Database } from "bun:sqlite";
import { latenciesAt } from "../../../domain/usage/latency-histogram.ts";
import type { UsageRecord } from "../../../domain/usage/usage.ts";
import type { Page, PageRequest } from "../../control-store.ts";
import type { UsageDimension, UsageStep } from "../../../domain/usage/usage-report.ts";
import type {
  AdmittedUsage,
  CallFilter,
  Percentiles,
  SeriesQuery,
  TotalsQuery,
  UsagePoint,
  UsageReports,
  UsageTotal,
} from "../../usage-reports.ts";
import type { SqliteConnection } from "../connection/connection.ts";
import {
  type AggregateQuestion,
  cutPieces,
  type GroupSum,
  UsageAggregate,
} from "./usage-aggregate.ts";
import { readAdmitted } from "./rollup/usage-admitted.ts";
import { listCalls } from "./usage-calls.ts";
import { readHorizon } from "./usage-horizons.ts";
import { cutRange, type UsageExtent } from "./usage-range.ts";
import { toRecord, type UsageRow } from "./usage-row.ts";
import { UsageRanking } from "./usage-ranking.ts";
import { nextTurn } from "../../../domain/waiting/next-turn.ts";
import { details, stepLengthsMs, stepStart } from "./usage-steps.ts";

/** Reads the ledger in SQLite, in steps that are each short: they run on the event loop. */
export class SqliteUsageReports implements UsageReports {
  readonly #connection: Pick<SqliteConnection, "use">;

  constructor(connection: Pick<SqliteConnection, "use">) {
    this.#connection = connection;
  }

  async totals({ filter, by, limit }: TotalsQuery): Promise<readonly UsageTotal[]> {
    const sums = await this.#aggregate({ filter, by, step: undefined }, "day");
    return sums
      .toSorted(compareCalls)
      .slice(0, limit)
      .map((sum) => toTotal(sum, by));
  }

  async series({ filter, by, limit, step }: SeriesQuery): Promise<readonly UsagePoint[]> {
    const groupIds = by.length === 0 ? undefined : await this.#rank({ filter, by, limit, step });
    const sums = await this.#aggregate({ filter, by, step, groupIds }, step);
    return sums
      .toSorted((one, other) => one.at - other.at || compareCalls(one, other))
      .map((sum) => ({ at: sum.at, ...toTotal(sum, by) }));
  }

  calls(filter: CallFilter, page: PageRequest): Promise<Page<UsageRecord>> {
    return listCalls(this.#connection, filter, page);
  }

  call(id: string): Promise<UsageRecord | undefined> {
    return this.#connection.use((database) => {
      const row = database.query<UsageRow, [string]>("SELECT * FROM usage WHERE id = ?").get(id);
      return row === null ? undefined : toRecord(row);
    });
  }

  admitted(since: number): Promise<readonly AdmittedUsage[]> {
    return this.#connection.use((database) => readAdmitted(database, since));
  }

  async #aggregate(question: AggregateQuestion, longest: UsageStep): Promise<GroupSum[]> {
    const aggregate = new UsageAggregate(question);
    await this.#addPieces(aggregate, question, longest);
    return aggregate.sums;
  }

  /**
   * The groups with the most calls of all steps together. They are found first, by their calls
   * alone: the sums of all groups in all steps would be too much to hold.
   */
  async #rank({ filter, by, limit, step }: SeriesQuery): Promise<readonly number[]> {
    const question = { filter, by, step };
    const ranking = new UsageRanking(question);
    await this.#addPieces(ranking, question, step);
    while (await this.#connection.use((database) => ranking.nameSome(database))) await nextTurn();
    return ranking.largest(limit);
  }

  async #addPieces(
    sums: Pick<UsageAggregate, "addPiece">,
    question: AggregateQuestion,
    longest: UsageStep,
  ): Promise<void> {
    const { since, until } = question.filter;
    const extent = await this.#connection.use(readExtent);
    for (const piece of cutPieces(cutRange({ since, until, longest, extent }), question)) {
      await this.#connection.use((database) => sums.addPiece(database, piece));
      await nextTurn();
    }
  }
}

function readExtent(database: Database): UsageExtent {
  // One by one: SQLite looks up a least or a greatest value, but not both at once.
  const bounds = database
    .query<Record<"firstDay" | "lastDay" | "firstMinute" | "lastMinute", number | null>, []>(
      `SELECT (SELECT min(at) FROM usage_days WHERE detail = ${details.full}) AS firstDay,
         (SELECT max(at) FROM usage_days WHERE detail = ${details.full}) AS lastDay,
         (SELECT min(at) FROM usage_minutes WHERE detail = ${details.full}) AS firstMinute,
         (SELECT max(at) FROM usage_minutes WHERE detail = ${details.full}) AS lastMinute`,
    )
    .get();
  const times = Object.values(bounds ?? {}).filter((at) => at !== null);
  const horizons = {
    minute: readHorizon(database, "minute"),
    hour: readHorizon(database, "hour"),
    day: readHorizon(database, "day"),
  };
  if (times.length === 0) return { since: 0, until: 0, horizons };
  const since = stepStart(Math.min(...times), "day");
  return { since, until: stepStart(Math.max(...times), "day") + stepLengthsMs.day, horizons };
}

/** Most calls first; what is equal has an order all the same. */
function compareCalls(one: GroupSum, other: GroupSum): number {
  return other.sum.calls - one.sum.calls || (one.group.name < other.group.name ? -1 : 1);
}

function toTotal({ group, sum }: GroupSum, by: readonly UsageDimension[]): UsageTotal {
  const values: UsageTotal["group"] = Object.fromEntries(
    by.map((dimension, index) => [dimension, group.values[index] ?? null] as const),
  );
  return {
    group: values,
    calls: sum.calls,
    failedCalls: sum.failedCalls,
    abandonedCalls: sum.abandonedCalls,
    inputTokens: sum.inputTokens,
    outputTokens: sum.outputTokens,
    cachedInputTokens: sum.cachedInputTokens,
    cacheWriteTokens: sum.cacheWriteTokens,
    estimatedTokens: sum.estimatedTokens,
    duration: toPercentiles(sum.durations),
    firstEvent: toPercentiles(sum.firstEvents),
  };
}

function toPercentiles(latencies: string): Percentiles | undefined {
  const [p50, p95, p99] = latenciesAt(latencies, [0.5, 0.95, 0.99]) ?? [];
  if (p50 === undefined || p95 === undefined || p99 === undefined) return undefined;
  return { p50, p95, p99 };
}
