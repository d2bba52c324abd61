import type { Command } from "./command.ts";
import { createResourceCommand } from "./resource-command.ts";
import { usageCallsVerb } from "./usage-calls.ts";
import { usageExportVerb } from "./usage-export.ts";
import { usageSeriesVerb, usageTotalsVerb } from "./usage-sums.ts";

export const usageCommand: Command = createResourceCommand({
  name: "usage",
  summary: "calls and tokens: totals, series, single calls, export",
  about: "Every call is in the ledger once. Without a verb: totals of the last 24 hours.",
  verbs: [usageTotalsVerb, usageSeriesVerb, usageCallsVerb, usageExportVerb],
  defaultVerb: "totals",
});
