import { exitCodes, readArguments, UsageError, type Command } from "./command.ts";
import { loadSettings, settingsOptions } from "./load-settings.ts";
import { openStores } from "./open-stores.ts";
import type { UsageSummary } from "../storage/store.ts";
import { formatTable } from "./table.ts";

const options = {
  ...settingsOptions,
  since: { type: "string" },
  json: { type: "boolean" },
} as const;

const unitsMs: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

export const usageCommand: Command = {
  name: "usage",
  summary: "sum up calls and tokens by application and model",
  help: `Usage: sluice usage [--since 1h]

Options:
  --since TIME        how far to look back: 30m, 1h, 7d (default 24h)
  -c, --config FILE   configuration (default: SLUICE_CONFIG, else the demo's)
  --data-dir DIR      data directory of the demo (default ./data/demo)
  --json              print JSON

Exit code: 0 done, 1 failed, 2 wrong usage.`,
  async run(args, io) {
    const { values } = readArguments(args, options);
    const sinceMs = readTime(values.since ?? "24h");
    const { config } = loadSettings(values, io);
    using stores = openStores(config);
    const rows = await stores.usage.summarize(stores.keys.clock.now() - sinceMs);
    if (values.json === true) io.print(JSON.stringify(rows.map(describe)));
    else if (rows.length > 0) io.print(formatUsage(rows));
    else io.report(`There were no calls in the last ${values.since ?? "24h"}.`);
    return exitCodes.ok;
  },
};

function describe(row: UsageSummary): object {
  return {
    environment: row.environment,
    application: row.application,
    key_id: row.keyId,
    model: row.model,
    calls: row.calls,
    failed_calls: row.failedCalls,
    input_tokens: row.inputTokens,
    cached_input_tokens: row.cachedInputTokens,
    output_tokens: row.outputTokens,
  };
}

function formatUsage(rows: readonly UsageSummary[]): string {
  const header = ["ENVIRONMENT", "APPLICATION", "KEY", "MODEL", "CALLS", "FAILED"];
  const cells = rows.map((row) => [
    row.environment,
    row.application,
    row.keyId,
    row.model,
    row.calls,
    row.failedCalls,
    row.inputTokens,
    row.cachedInputTokens,
    row.outputTokens,
  ]);
  return formatTable([...header, "INPUT", "CACHED", "OUTPUT"], cells);
}

function readTime(text: string): number {
  const [, count, unit] = /^([1-9][0-9]{0,5})([mhd])$/.exec(text) ?? [];
  if (count === undefined || unit === undefined) {
    throw new UsageError(`--since takes a time such as 30m, 1h or 7d, not '${text}'`);
  }
  return Number(count) * (unitsMs[unit] ?? 0);
}
