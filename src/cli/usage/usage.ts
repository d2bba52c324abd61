import { CommandError } from "../command.ts";
import { exitCodes } from "../../process/program.ts";
import { limitUpTo } from "../verbs/read-values.ts";
import { textsOf } from "../client/admin-client.ts";
import { readFields } from "../verbs/run-verb.ts";
import type { FieldTexts } from "../verbs/fields.ts";
import type { ResourceSpec } from "../verbs/verb-command.ts";
import type { VerbCall } from "../verbs/verb.ts";
import { commandLine, shellWord } from "../program.ts";
import { printable, readRecords, type ReplyRecord } from "../output/reply-fields.ts";
import { costText } from "../output/usd.ts";
import { largestGroupLimit, showUsageReport } from "./usage-report.ts";

const texts: FieldTexts = {
  limit: { read: limitUpTo(largestGroupLimit), about: "Maximum groups to show. Default: 100." },
};

export const usage: ResourceSpec = {
  name: "usage",
  about:
    "Every call is in the ledger once. Without a verb: totals of the last 24 " +
    "hours.\n\nFAILED calls did not complete, including those refused by a limit. ABANDONED " +
    "calls are the failed ones whose caller left. INPUT and OUTPUT are tokens. CACHED and " +
    "WRITTEN are parts of INPUT, read from and written to a provider's cache. ESTIMATED " +
    "tokens were not counted by an upstream. USD is the cost by `sluice prices list`, at least (>=) " +
    "where some calls have no price. MS is the duration of completed calls. TOTAL " +
    "covers all groups, shown or not.",
  verbs: [
    {
      name: "totals",
      isDefault: true,
      operation: "getUsageTotals",
      summary: "Sum up calls and tokens",
      texts: { ...texts, by: { default: "key,model" } },
      run: showSums,
      examples: ["usage --since 1h", "usage totals --since 30d --by account,model"],
    },
    {
      name: "series",
      operation: "getUsageSeries",
      summary: "Totals by minute, hour or day",
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
        { title: "USD", of: ({ cost_usd: cost }) => costText(cost) },
        { title: "COUNT", of: "usage_source" },
        { title: "MS", of: "duration_ms" },
      ],
      whenEmpty: "No calls found.",
      notes: callNotes,
      examples: ["usage calls --application search --outcome failed --since 1h"],
    },
    {
      name: "export",
      operation: "exportUsage",
      summary: "Write single calls as CSV or NDJSON, without a limit",
      run: exportCalls,
      examples: ["usage export --format csv --since 30d > calls.csv"],
    },
  ],
};

function callNotes({ options }: VerbCall, answer: ReplyRecord): readonly string[] {
  const calls = readRecords(answer, "data");
  const { endUser: name } = options;
  if (calls.length > 0 || typeof name !== "string") return repricedNotes(calls);
  const command = commandLine(`accounts end-users ACCOUNT --names ${shellWord(printable(name))}`);
  return [`Calls usually have pseudonyms of end users, which \`${command}\` shows.`];
}

export function repricedNotes(calls: readonly ReplyRecord[]): readonly string[] {
  const repriced = calls.filter(({ repriced_usd: cost }) => typeof cost === "string");
  if (repriced.length === 0) return [];
  return [
    `${repriced.length} of them ${repriced.length === 1 ? "was" : "were"} priced again: USD is the first ` +
      "cost, `--json` has both, and sums have the new one.",
  ];
}

async function showSums(call: VerbCall): Promise<number> {
  const { client, io, isJson, verb } = call;
  const path = verb.operation.path.slice("/admin/v1".length);
  const query = textsOf(await readFields(call));
  if (isJson) io.print(JSON.stringify(await client.request("GET", path, { query })));
  else await showUsageReport({ client, io }, { path, query });
  return exitCodes.ok;
}

async function exportCalls(call: VerbCall): Promise<number> {
  const { client, io, isJson } = call;
  const format = isJson ? { format: "ndjson" } : {};
  const query = { ...format, ...textsOf(await readFields(call)) };
  for await (const bytes of client.stream("/usage/export", query)) {
    // A reader such as `head` has closed the stream.
    if (!(await io.write(bytes))) return exitCodes.ok;
    if (io.signal.aborted) throw new CommandError("the export was cut off");
  }
  return exitCodes.ok;
}
