import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CallFilter } from "../../src/store/usage-reports.ts";
import type { Figure } from "../figure.ts";
import type { OwnContext } from "../figures/context.ts";
import { summarize } from "../statistics.ts";
import { LedgerFile } from "./ledger-file.ts";
import { applicationId, keyId } from "./usage-calls.ts";

const dayMs = 86_400_000;
const until = Date.UTC(2026, 0, 31);
const since = until - 30 * dayMs;
/** Recent calls at the rate of a busy gateway, for the cost of a row under load. */
const busyCallsPerSecond = 500;
const pageTargetMs = 200;
const seriesTargetMs = 300;

/** The cost of reports over a ledger of 30 days, and the gateway's cost of a row. */
export async function measureReports(context: OwnContext): Promise<readonly Figure[]> {
  const { plan, signal, progress } = context;
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-reports-"));
  try {
    await using ledger = new LedgerFile(join(folder, "ledger.db"));
    const count = plan.reportedCalls;
    progress(`reports: filling a ledger with ${count} calls`);
    const sparse = await ledger.fill({ since, until, count }, signal);
    const size = ledger.megabytes;
    const figures = await measureQueries(ledger, context);
    progress("reports: filling it as a busy gateway does");
    const busyCalls = Math.ceil(count / 10);
    const busyMs = (busyCalls * 1_000) / busyCallsPerSecond;
    const busySpan = { since: until, until: until + busyMs, count: busyCalls, first: count };
    const busy = await ledger.fill(busySpan, signal);
    return [
      {
        name: "reports.insert_busy",
        title: `A ledger row at ${busyCallsPerSecond} calls a second`,
        unit: "us CPU",
        sluice: busy,
      },
      {
        name: "reports.insert_sparse",
        title: `A ledger row, ${count} calls in 30 days`,
        unit: "us CPU",
        sluice: sparse,
      },
      { name: "reports.size", title: `A ledger of ${count} calls`, unit: "MB", sluice: size },
      ...figures,
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Query {
  readonly name: string;
  readonly title: string;
  readonly target: number;
  readonly run: () => Promise<unknown>;
}

async function measureQueries(
  ledger: LedgerFile,
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
    figures.push({ name: `reports.${name}`, title, unit: "ms", sluice, target });
  }
  const longest = ledger.takeLongestStepMs();
  const title = "Longest step of a report";
  return [...figures, { name: "reports.longest_step", title, unit: "ms", sluice: longest }];
}

function pages({ reports }: LedgerFile): readonly Query[] {
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

function sums({ reports }: LedgerFile): readonly Query[] {
  const target = seriesTargetMs;
  const filter = { since, until };
  const limit = 100;
  const series = (step: "hour" | "day", by: readonly ("key" | "model" | "status")[]): Query => ({
    name: ["series", step, ...by].join("_"),
    title: `30 days by ${[step, ...by].join(" and ")}`,
    target,
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
      target,
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
      target,
      run: () => reports.totals({ filter, by: ["key", "model"], limit }),
    },
    {
      name: "percentiles",
      title: "p50, p95 and p99 of 30 days and 7 hours",
      target,
      run: () =>
        reports.totals({ filter: { since: since + 17 * 3_600_000, until }, by: [], limit }),
    },
  ];
}
