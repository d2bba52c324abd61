import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CallFilter } from "../../src/store/usage-reports.ts";
import type { Figure } from "../figure.ts";
import type { OwnContext } from "../figures/context.ts";
import { summarize } from "../statistics.ts";
import { postgresPrograms, startPostgres } from "../../test/support/postgres-server.ts";
import { BenchLedger } from "./bench-ledger.ts";
import { applicationId, keyId } from "./usage-calls.ts";

const dayMs = 86_400_000;
const until = Date.UTC(2026, 0, 31);
const since = until - 30 * dayMs;
/** Recent calls at the rate of a busy gateway, for the cost of a row under load. */
const busyCallsPerSecond = 500;
const pageTargetMs = 200;
const dailyTargetMs = 500;
const hourlyTargetMs = 2_000;

/** The cost of reports over ledgers of 30 days in both databases, and the gateway's of a row. */
export async function measureReports(context: OwnContext): Promise<readonly Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-reports-"));
  try {
    await using file = BenchLedger.inFile(join(folder, "ledger.db"));
    const inFile = await measureLedger(file, "sqlite", context);
    return [...inFile, ...(await measureServer(context))];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measureServer(context: OwnContext): Promise<readonly Figure[]> {
  if (postgresPrograms === undefined) {
    context.progress("reports: PostgreSQL is not installed");
    return [];
  }
  await using server = await startPostgres();
  await using ledger = BenchLedger.onServer(await server.createDatabase());
  return await measureLedger(ledger, "postgres", context);
}

async function measureLedger(
  ledger: BenchLedger,
  database: "sqlite" | "postgres",
  context: OwnContext,
): Promise<readonly Figure[]> {
  const { plan, signal, progress } = context;
  const count = plan.reportedCalls;
  progress(`reports: filling a ledger with ${count} calls (${database})`);
  const sparse = await ledger.fill({ since, until, count }, signal);
  const figures = await measureQueries(ledger, context);
  progress("reports: filling it as a busy gateway does");
  const busyCalls = Math.ceil(count / 10);
  const busyMs = (busyCalls * 1_000) / busyCallsPerSecond;
  const busySpan = { since: until, until: until + busyMs, count: busyCalls, first: count };
  const busy = await ledger.fill(busySpan, signal);
  const rows: readonly Figure[] = [
    {
      name: "insert_busy",
      title: `A ledger row at ${busyCallsPerSecond} calls a second`,
      unit: "us CPU",
      sluice: busy,
    },
    {
      name: "insert_sparse",
      title: `A ledger row, ${count} calls in 30 days`,
      unit: "us CPU",
      sluice: sparse,
    },
  ];
  return [...rows, ...figures].map((figure) => ({
    ...figure,
    name: `reports.${database}.${figure.name}`,
    title: `${figure.title} (${database})`,
  }));
}

interface Query {
  readonly name: string;
  readonly title: string;
  readonly target: number;
  readonly run: () => Promise<unknown>;
}

async function measureQueries(
  ledger: BenchLedger,
  { plan, signal, progress }: OwnContext,
): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  for (const { name, title, target, run } of [...pages(ledger), ...sums(ledger)]) {
    progress(`reports: ${title}`);
    const times: number[] = [];
    for (let round = 0; round < plan.rounds; round += 1) {
      signal.throwIfAborted();
      const startedAt = performance.now();
      await run();
      times.push(performance.now() - startedAt);
    }
    const sluice = summarize(times).median;
    figures.push({ name, title, unit: "ms", sluice, target });
  }
  const longest = ledger.takeLongestStepMs();
  const title = "Longest step of a report";
  return [...figures, { name: "longest_step", title, unit: "ms", sluice: longest }];
}

function pages({ reports }: BenchLedger): readonly Query[] {
  const page = (name: string, title: string, filter: Partial<CallFilter>): Query => ({
    name: `page_${name}`,
    title: `Page of 50 calls, ${title}`,
    target: pageTargetMs,
    run: () => reports.calls({ since, until, ...filter }, { limit: 50 }),
  });
  const after = Buffer.from(JSON.stringify([until - 14 * dayMs, "req"])).toString("base64url");
  return [
    page("first", "the newest", {}),
    {
      ...page("deep", "two weeks back", {}),
      run: () => reports.calls({ since, until }, { limit: 50, after }),
    },
    page("key", "of one key", { keyId: keyId(17) }),
    page("application", "of one application", { applicationId: applicationId(7) }),
    page("rare", "of a model that failed", { model: "embed-text-v2", status: 500 }),
    page("none", "of a model that nobody called", { model: "unknown" }),
  ];
}

function sums({ reports }: BenchLedger): readonly Query[] {
  const filter = { since, until };
  const limit = 100;
  const series = (step: "hour" | "day", by: readonly ("key" | "model" | "status")[]): Query => ({
    name: ["series", step, ...by].join("_"),
    title: `30 days by ${[step, ...by].join(" and ")}`,
    target: step === "hour" ? hourlyTargetMs : dailyTargetMs,
    run: () => reports.series({ filter, by, limit, step }),
  });
  return [
    series("day", []),
    series("day", ["key"]),
    series("day", ["status"]),
    series("hour", []),
    series("hour", ["key"]),
    series("hour", ["model"]),
    {
      name: "series_hour_one_key",
      title: "30 days by hour and status of one key",
      target: hourlyTargetMs,
      run: () =>
        reports.series({
          filter: { ...filter, keyId: keyId(17) },
          by: ["status"],
          limit,
          step: "hour",
        }),
    },
    {
      name: "totals",
      title: "Totals of 30 days by key and model",
      target: dailyTargetMs,
      run: () => reports.totals({ filter, by: ["key", "model"], limit }),
    },
    {
      name: "percentiles",
      title: "p50, p95 and p99 of 30 days and 7 hours",
      target: dailyTargetMs,
      run: () =>
        reports.totals({ filter: { since: since + 17 * 3_600_000, until }, by: [], limit }),
    },
  ];
}
