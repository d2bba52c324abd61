import { sql } from "kysely";
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
import type { SqlConnection } from "../connection.ts";
import type { Queries } from "../tables.ts";
import { readHorizons } from "./fold-positions.ts";
import {
  type AggregateQuestion,
  cutPieces,
  type GroupSum,
  UsageAggregate,
} from "./usage-aggregate.ts";
import { readAdmitted } from "./usage-admitted.ts";
import { listCalls } from "./usage-calls.ts";
import { cutRange, type UsageExtent } from "./usage-range.ts";
import { toRecord } from "./usage-record.ts";
import { UsageRanking } from "./usage-ranking.ts";
import { nextTurn } from "../../../domain/waiting/next-turn.ts";
import { details, stepLengthsMs, stepStart, stepTables } from "./usage-steps.ts";

/** Reads the ledger in short steps, because they run on the event loop. */
export class SqlUsageReports implements UsageReports {
  readonly #connection: Pick<SqlConnection, "read">;

  constructor(connection: Pick<SqlConnection, "read">) {
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
    return this.#connection.read(async (queries) => {
      const query = queries.selectFrom("usage").selectAll().where("id", "=", id);
      const row = await query.executeTakeFirst();
      return row && toRecord(row);
    });
  }

  admitted(since: number): Promise<readonly AdmittedUsage[]> {
    return this.#connection.read((queries) => readAdmitted(queries, since));
  }

  async #aggregate(question: AggregateQuestion, longest: UsageStep): Promise<GroupSum[]> {
    const aggregate = new UsageAggregate(question);
    await this.#addPieces(aggregate, question, longest);
    return aggregate.sums;
  }

  /**
   * The groups with the most calls over all steps. They are found first, because the sums of all
   * groups in all steps would need too much memory.
   */
  async #rank({ filter, by, limit, step }: SeriesQuery): Promise<readonly number[]> {
    const question = { filter, by, step };
    const ranking = new UsageRanking(question);
    await this.#addPieces(ranking, question, step);
    while (await this.#connection.read((queries) => ranking.nameSome(queries))) await nextTurn();
    return ranking.largest(limit);
  }

  async #addPieces(
    sums: Pick<UsageAggregate, "addPiece">,
    question: AggregateQuestion,
    longest: UsageStep,
  ): Promise<void> {
    const { since, until } = question.filter;
    const extent = await this.#connection.read(readExtent);
    for (const piece of cutPieces(cutRange({ since, until, longest, extent }), question)) {
      await this.#connection.read((queries) => sums.addPiece(queries, piece));
      await nextTurn();
    }
  }
}

async function readExtent(queries: Queries): Promise<UsageExtent> {
  // Separately, because SQLite can look up a minimum or a maximum by index, but not both at once.
  const bound = (which: "min" | "max", step: UsageStep) => sql`(
    select ${sql.raw(which)}(at) from ${sql.table(stepTables[step])} where detail = ${details.full})`;
  const bounds = sql<Record<string, number | null>>`
    select ${bound("min", "day")} as first_day, ${bound("max", "day")} as last_day,
      ${bound("min", "minute")} as first_minute, ${bound("max", "minute")} as last_minute`;
  const [row] = (await bounds.execute(queries)).rows;
  const times = Object.values(row ?? {}).filter((at) => at !== null);
  const horizons = await readHorizons(queries);
  if (times.length === 0) return { since: 0, until: 0, horizons };
  const since = stepStart(Math.min(...times), "day");
  return { since, until: stepStart(Math.max(...times), "day") + stepLengthsMs.day, horizons };
}

/** Most calls first; ties have a stable order. */
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
