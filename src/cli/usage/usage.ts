import type { Command } from "../command.ts";
import { createResourceCommand } from "../resource-command.ts";
import { usageCallsVerb } from "./usage-calls.ts";
import { usageExportVerb } from "./usage-export.ts";
import { usageSeriesVerb, usageTotalsVerb } from "./usage-sums.ts";

export const usageCommand: Command = createResourceCommand({
  name: "usage",
  summary: "calls and tokens: totals, series, single calls, export",
  about: `Every call is in the ledger once. Without a verb: totals of the last 24 hours.

In tables, CALLS are all; FAILED of them did not complete, those included that a limit refused;
ABANDONED of the failed were left by their callers. INPUT and OUTPUT are tokens: CACHED and WRITTEN
are the parts of INPUT that came from a provider's cache and went into it, and ESTIMATED the part of
both that no upstream counted. MS is the duration of completed calls; the line TOTAL is of all
groups, shown or not.`,
  verbs: [usageTotalsVerb, usageSeriesVerb, usageCallsVerb, usageExportVerb],
  defaultVerb: "totals",
});
