import { CommandError } from "../command.ts";
import { exitCodes } from "../../process/exit-codes.ts";
import { limitUpTo } from "../verbs/read-values.ts";
import { textsOf } from "../client/admin-client.ts";
import { readFields } from "../verbs/run-verb.ts";
import type { FieldTexts } from "../verbs/fields.ts";
import type { ResourceSpec } from "../verbs/verb-command.ts";
import type { VerbCall } from "../verbs/verb.ts";
import { largestGroupLimit, showUsageReport } from "./usage-report.ts";

const texts: FieldTexts = {
  limit: { read: limitUpTo(largestGroupLimit), about: "Most groups to show. Default: 100." },
};

export const usage: ResourceSpec = {
  name: "usage",
  about:
    "Every call is in the ledger once. Without a verb: totals of the last 24 hours.\n\n" +
    "In tables, CALLS are all; FAILED of them did not complete, those included that a limit refused; " +
    "ABANDONED of the failed were left by their callers. INPUT and OUTPUT are tokens: CACHED and " +
    "WRITTEN are the parts of INPUT that came from a provider's cache and went into it, and ESTIMATED " +
    "the part of both that no upstream counted. MS is the duration of completed calls; the line TOTAL " +
    "is of all groups, shown or not.",
  defaultVerb: "totals",
  verbs: [
    {
      name: "totals",
      operation: "getUsageTotals",
      summary: "Sum up calls and tokens",
      texts: { ...texts, by: { default: "key,model" } },
      run: showSums,
      examples: ["usage --since 1h", "usage totals --since 30d --by account,model"],
    },
    {
      name: "series",
      operation: "getUsageSeries",
      summary: "The same for each step of time",
      texts,
      run: showSums,
      examples: ["usage series --since 7d --step day --by model"],
    },
    {
      name: "calls",
      operation: "listCalls",
      summary: "List single calls, newest first",
      columns: [
        { title: "AT", of: "started_at" },
        "id",
        "application",
        "model",
        "target",
        "outcome",
        "status",
        { title: "INPUT", of: "input_tokens" },
        { title: "OUTPUT", of: "output_tokens" },
        { title: "COUNT", of: "usage_source" },
        { title: "MS", of: "duration_ms" },
      ],
      whenEmpty: "There were no such calls.",
      examples: ["usage calls --application search --outcome failed --since 1h"],
    },
    {
      name: "export",
      operation: "exportUsage",
      summary: "Write single calls as CSV or NDJSON, however many",
      run: exportCalls,
      examples: ["usage export --format csv --since 30d > calls.csv"],
    },
  ],
};

async function showSums(call: VerbCall): Promise<number> {
  const { client, io, isJson, verb } = call;
  const path = verb.operation.path.slice("/admin/v1".length);
  const query = textsOf(await readFields(call));
  if (isJson) io.print(JSON.stringify(await client.request("GET", path, { query })));
  else {
    const { by = "", step: _step, limit, ...filter } = query;
    const groups = by.split(",").filter(Boolean);
    const most = limit === undefined ? undefined : Number(limit);
    await showUsageReport({ client, io }, { path, by: groups, query, filter, limit: most });
  }
  return exitCodes.ok;
}

async function exportCalls(call: VerbCall): Promise<number> {
  const { client, io, isJson } = call;
  const format = isJson ? { format: "ndjson" } : {};
  const query = { ...format, ...textsOf(await readFields(call)) };
  for await (const bytes of client.stream("/usage/export", query)) {
    // A reader such as `head` has closed the stream.
    if (!(await io.write(bytes))) return exitCodes.ok;
    if (io.signal.aborted) throw new CommandError("the export was ended before its end");
  }
  return exitCodes.ok;
}
