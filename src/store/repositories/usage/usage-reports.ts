import { sql } from "kysely";
import { latenciesAt } from "../../../domain/usage/latency-histogram.ts";
import {
  type GroupDimension,
  isOfCalls,
  needsCalls,
  type UsageRecord,
  type UsageStep,
} from "../../../domain/usage/usage.ts";
import { nextTurn } from "../../../domain/waiting/wait.ts";
import type { Page, PageRequest } from "../../control-store.ts";
import type {
  CallFilter,
  Percentiles,
  SeriesQuery,
  TotalsQuery,
  UsagePoint,
  UsageReports,
  UsageTotal,
} from "../../usage-reports.ts";
import type { Queries, SqlConnection } from "../tables.ts";
import { latestCalls } from "./call-spans.ts";
import { listCalls } from "./usage-calls.ts";
import {
  type GroupSum,
  rankedCounts,
  readCallSums,
  readSums,
  type SumQuestion,
} from "./usage-groups.ts";
import { cutRange, type RangePiece, stepLengthsMs, type UsageExtent } from "./usage-range.ts";
import { readHorizons } from "./usage-store.ts";
import { toRecord } from "./usage-row.ts";
import { addSum } from "./usage-sums.ts";

/** Most groups that are ranked; beyond that, those with the least so far are dropped. */
const rankedGroups = 200_000;

/** A statement reads as many steps as take about this long; the event loop runs in between. */
const wantedStepMs = 30;
const firstSteps = 2;

/** Reads the ledger in short steps, because SQLite's run on the event loop. */
export class SqlUsageReports implements UsageReports {
  readonly #connection: Pick<SqlConnection, "read">;

  constructor(connection: Pick<SqlConnection, "read">) {
    this.#connection = connection;
  }

  async totals(query: TotalsQuery): Promise<readonly UsageTotal[]> {
    const { filter, by, limit, hasRest = false } = query;
    // There may be as many end users as calls.
    const isLong = by.some(isOfCalls);
    const largest = hasRest || isLong ? await this.#largest(query) : undefined;
    const sums = new SumTable(largest, hasRest);
    await this.#readAll({ filter, by, step: undefined }, "day", (sum) => sums.add(sum));
    const all = sums.all.toSorted(compareCalls);
    return (largest === undefined ? all.slice(0, limit) : all).map((sum) => toTotal(sum, by));
  }

  async series(query: SeriesQuery): Promise<readonly UsagePoint[]> {
    const { filter, by, step, hasRest = false } = query;
    // Found first, because all groups in all steps would need too much memory.
    const largest = by.length === 0 ? undefined : await this.#largest(query);
    const sums = new SumTable(largest, hasRest);
    await this.#readAll({ filter, by, step }, step, (sum) => sums.add(sum));
    return sums.all
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

  /** The names of the groups with the most calls or tokens over all steps. */
  async #largest({
    filter,
    by,
    limit,
    rank = "calls",
  }: TotalsQuery & Pick<SeriesQuery, "rank">): Promise<ReadonlySet<string>> {
    let sizes = new Map<string, number>();
    await this.#readAll({ filter, by, step: undefined, ranking: rank }, "day", ({ name, sum }) => {
      const size = rankedCounts[rank].reduce((total, count) => total + Number(sum[count]), 0);
      sizes.set(name, (sizes.get(name) ?? 0) + size);
      if (sizes.size > rankedGroups) sizes = new Map(ranked(sizes).slice(0, rankedGroups / 2));
    });
    return new Set(
      ranked(sizes)
        .slice(0, limit)
        .map(([name]) => name),
    );
  }

  /** Calls `add` with the sums of each group, any number of times. */
  async #readAll(
    question: SumQuestion,
    longest: UsageStep,
    add: (sum: GroupSum) => void,
  ): Promise<void> {
    const { since, until } = question.filter;
    const extent = await this.#connection.read(readExtent);
    if (needsCalls(question.filter, question.by)) {
      const kept = { since: Math.max(since, extent.callsSince), until } as const;
      return this.#readMinutes(question, { ...kept, step: "minute" }, add);
    }
    for (const piece of cutRange({ since, until, longest, extent })) {
      if (piece.step === "minute") await this.#readMinutes(question, piece, add);
      else await this.#readSteps(question, piece, add);
    }
  }

  async #readSteps(
    question: SumQuestion,
    { step, since, until }: RangePiece,
    add: (sum: GroupSum) => void,
  ): Promise<void> {
    let steps = firstSteps;
    for (let start = since; start < until;) {
      const end = Math.min(until, start + steps * stepLengthsMs[step]);
      const piece = { step, since: start, until: end };
      const startedAt = performance.now();
      await this.#read((queries) => readSums(queries, question, piece), add);
      const isFast = performance.now() - startedAt < wantedStepMs;
      steps = isFast ? steps * 2 : Math.max(1, Math.floor(steps / 2));
      start = end;
    }
  }

  async #readMinutes(
    question: SumQuestion,
    { since, until }: RangePiece,
    add: (sum: GroupSum) => void,
  ): Promise<void> {
    let end = until;
    while (since < end) {
      const rest = { since, until: end };
      await this.#read(async (queries) => {
        const span = await latestCalls(queries, question.filter, rest);
        end = span.since;
        return readCallSums(queries, question, span);
      }, add);
    }
  }

  async #read(
    read: (queries: Queries) => Promise<readonly GroupSum[]>,
    add: (sum: GroupSum) => void,
  ): Promise<void> {
    for (const sum of await this.#connection.read(read)) add(sum);
    await nextTurn();
  }
}

function ranked(sizes: ReadonlyMap<string, number>): (readonly [string, number])[] {
  return [...sizes].toSorted(
    ([name, one], [otherName, other]) => other - one || (name < otherName ? -1 : 1),
  );
}

/** The sums of groups by step; of others than `largest`, if they are given, at most one sum. */
class SumTable {
  readonly #sums = new Map<string, GroupSum>();
  readonly #largest: ReadonlySet<string> | undefined;
  readonly #hasRest: boolean;

  constructor(largest: ReadonlySet<string> | undefined, hasRest: boolean) {
    this.#largest = largest;
    this.#hasRest = hasRest;
  }

  get all(): GroupSum[] {
    return [...this.#sums.values()];
  }

  add(given: GroupSum): void {
    const isLarge = this.#largest?.has(given.name) !== false;
    if (!isLarge && !this.#hasRest) return;
    const sum = isLarge ? given : { ...given, name: "", values: undefined };
    const name = `${sum.at} ${sum.name}`;
    const known = this.#sums.get(name);
    if (known === undefined) this.#sums.set(name, sum);
    else addSum(known.sum, sum.sum);
  }
}

async function readExtent(queries: Queries): Promise<UsageExtent> {
  // Separately, because SQLite can look up a minimum or a maximum by index, but not both at once.
  const { rows } = await sql<Record<"first" | "last" | "newest", number | null>>`
    select (select min(at) from usage_sums where grain = 'day') as first,
      (select max(at) from usage_sums where grain = 'day') as last,
      (select max(started_at) from usage) as newest`.execute(queries);
  const { first, last, newest } = rows[0] ?? { first: null, last: null, newest: null };
  const { call: callsSince, hour: hoursSince } = await readHorizons(queries);
  if (first === null || last === null) return { since: 0, until: 0, callsSince, hoursSince };
  // Without calls, everything stored is older than their retention.
  const until = newest === null ? last + stepLengthsMs.day : newest + 1;
  return { since: first, until, callsSince, hoursSince };
}

/** Most calls first; ties have a stable order. */
function compareCalls(one: GroupSum, other: GroupSum): number {
  return other.sum.calls - one.sum.calls || (one.name < other.name ? -1 : 1);
}

function toTotal({ values, sum }: GroupSum, by: readonly GroupDimension[]): UsageTotal {
  const dimensions = values === undefined ? [] : by;
  const group: UsageTotal["group"] = Object.fromEntries(
    dimensions.map((dimension, index) => [dimension, values?.[index] ?? null] as const),
  );
  const { durations, firstEvents, costNano, ...counts } = sum;
  return {
    group,
    ...counts,
    costNano: costNano === 0n && counts.unpricedCalls > 0 ? undefined : costNano,
    duration: toPercentiles(durations),
    firstEvent: toPercentiles(firstEvents),
  };
}

function toPercentiles(latencies: string): Percentiles | undefined {
  const [p50, p95, p99] = latenciesAt(latencies, [0.5, 0.95, 0.99]) ?? [];
  if (p50 === undefined || p95 === undefined || p99 === undefined) return undefined;
  return { p50, p95, p99 };
}
