import type { AdminQuery } from "./admin-client.ts";
import { exitCodes } from "./command.ts";
import { readRecord, readRecords } from "./reply-fields.ts";
import { formatRecords, type Column } from "./show-reply.ts";
import { readUsageFilter, usageFilterOptions } from "./usage-filter.ts";
import { defineVerb, type VerbCall } from "./verb.ts";

const sumOptions = {
  by: {
    type: "string",
    value: "key,model",
    about: "what to sum by: environment, account, application, key, model, target, status, class",
  },
  ...usageFilterOptions,
  limit: { type: "string", value: "N", about: "most groups" },
} as const;

const defaultDimensions = ["key", "model"];

const sumColumns: readonly Column[] = [
  { title: "CALLS", of: "calls" },
  { title: "FAILED", of: "failed_calls" },
  { title: "ABANDONED", of: "abandoned_calls" },
  { title: "INPUT", of: "input_tokens" },
  { title: "CACHED", of: "cached_input_tokens" },
  { title: "OUTPUT", of: "output_tokens" },
  { title: "ESTIMATED", of: "estimated_tokens" },
  { title: "MS P50", of: "duration_ms.p50" },
  { title: "P95", of: "duration_ms.p95" },
  { title: "P99", of: "duration_ms.p99" },
];

export const usageTotalsVerb = defineVerb({
  name: "totals",
  summary: "sum up calls and tokens",
  options: sumOptions,
  examples: ["usage --since 1h", "usage totals --since 30d --by account,model"],
  async run(call) {
    const { args, client } = call;
    args.none();
    const by = args.list("by") ?? defaultDimensions;
    const query = await readSumQuery(call, by);
    return showSums(call, {
      answer: await client.request("GET", "/usage/totals", { query }),
      columns: [...groupColumns(by), ...sumColumns],
    });
  },
});

export const usageSeriesVerb = defineVerb({
  name: "series",
  summary: "the same for each step of time",
  options: {
    step: { type: "string", value: "minute|hour|day", about: "default: what suits the time" },
    ...sumOptions,
  },
  examples: ["usage series --since 7d --step day --by model"],
  async run(call) {
    const { args, client } = call;
    args.none();
    const by = args.list("by") ?? [];
    const query = { ...(await readSumQuery(call, by)), step: args.text("step") };
    return showSums(call, {
      answer: await client.request("GET", "/usage/series", { query }),
      columns: [{ title: "AT", of: "at" }, ...groupColumns(by), ...sumColumns],
    });
  },
});

async function readSumQuery(
  { args, client, io }: VerbCall<keyof typeof sumOptions>,
  by: readonly string[],
): Promise<AdminQuery> {
  const limit = args.count("limit");
  return {
    ...(await readUsageFilter(args, client, io)),
    by: by.length === 0 ? undefined : by.join(","),
    limit,
  };
}

function groupColumns(by: readonly string[]): readonly Column[] {
  return by.map((dimension) => ({ title: dimension.toUpperCase(), of: `group.${dimension}` }));
}

interface Sums {
  readonly answer: unknown;
  readonly columns: readonly Column[];
}

function showSums(
  { io, isJson }: Pick<VerbCall, "io" | "isJson">,
  { answer, columns }: Sums,
): number {
  const records = readRecords(answer, "data");
  const { since, until } = readRecord(answer);
  if (isJson) io.print(JSON.stringify(answer));
  else if (records.length > 0) io.print(formatRecords(columns, records));
  else io.report(`There were no calls between ${String(since)} and ${String(until)}.`);
  return exitCodes.ok;
}
