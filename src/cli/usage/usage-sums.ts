import type { AdminQuery } from "../client/admin-client.ts";
import { exitCodes } from "../../process/exit-codes.ts";
import { UsageError } from "../command.ts";
import { readUsageFilter, usageFilterOptions } from "./usage-filter.ts";
import { largestGroupLimit, showUsageReport } from "./usage-report.ts";
import { defineVerb, type VerbCall } from "../verb.ts";

const sumOptions = {
  by: {
    type: "string",
    value: "key,model",
    about: "what to sum by: environment, account, application, key, model, target, status, class",
  },
  ...usageFilterOptions,
  limit: { type: "string", value: "N", about: "most groups (default 100)" },
} as const;

const defaultDimensions = ["key", "model"];

export const usageTotalsVerb = defineVerb({
  name: "totals",
  summary: "sum up calls and tokens",
  options: sumOptions,
  examples: ["usage --since 1h", "usage totals --since 30d --by account,model"],
  async run(call) {
    const by = call.args.list("by") ?? defaultDimensions;
    return showSums(call, { path: "/usage/totals", by });
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
    const by = call.args.list("by") ?? [];
    return showSums(call, { path: "/usage/series", by, step: call.args.text("step") });
  },
});

interface Sums {
  readonly path: string;
  readonly by: readonly string[];
  readonly step?: string | undefined;
}

async function showSums(
  call: VerbCall<keyof typeof sumOptions>,
  { path, by, step }: Sums,
): Promise<number> {
  const { args, client, io, isJson } = call;
  args.none();
  const limit = readLimit(call);
  const filter = await readUsageFilter(args, client, io);
  const query: AdminQuery = { ...filter, step, by: by.length === 0 ? undefined : by.join(",") };
  if (isJson) {
    const answer = await client.request("GET", path, { query: { ...query, limit } });
    io.print(JSON.stringify(answer));
  } else await showUsageReport({ client, io }, { path, by, query, filter, limit });
  return exitCodes.ok;
}

function readLimit({ args }: VerbCall<keyof typeof sumOptions>): number | undefined {
  const limit = args.count("limit");
  if (limit === undefined || (limit >= 1 && limit <= largestGroupLimit)) return limit;
  throw new UsageError(`--limit takes 1 to ${largestGroupLimit}`);
}
