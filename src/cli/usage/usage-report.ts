import type { AdminClient, AdminQuery } from "../client/admin-client.ts";
import type { CommandIo } from "../command.ts";
import { cellOf, readRecord, readRecords, type ReplyRecord } from "../output/reply-fields.ts";
import { formatRecords, type Column } from "../output/show-reply.ts";
import { findGroupNames, groupColumns } from "./usage-groups.ts";

/** Most groups of one answer of the admin API. */
export const largestGroupLimit = 1000;
const defaultLimit = 100;

export interface UsageReport {
  readonly path: string;
  readonly by: readonly string[];
  readonly query: AdminQuery;
  /** The query, without options that only change how the report looks. */
  readonly filter: AdminQuery;
  /** Limit on the groups shown. */
  readonly limit: number | undefined;
}

interface ReportIo {
  readonly client: AdminClient;
  readonly io: Pick<CommandIo, "print" | "report">;
}

const sumColumns: readonly Column[] = [
  { title: "CALLS", of: "calls" },
  { title: "FAILED", of: "failed_calls" },
  { title: "ABANDONED", of: "abandoned_calls" },
  { title: "INPUT", of: "input_tokens" },
  { title: "CACHED", of: "cached_input_tokens" },
  { title: "WRITTEN", of: "cache_write_tokens" },
  { title: "OUTPUT", of: "output_tokens" },
  { title: "ESTIMATED", of: "estimated_tokens" },
  { title: "MS P50", of: "duration_ms.p50" },
  { title: "P95", of: "duration_ms.p95" },
  { title: "P99", of: "duration_ms.p99" },
];

/**
 * Prints sums as a table: groups with names, a line with the total, and a note if groups are left
 * out.
 */
export async function showUsageReport(
  { client, io }: ReportIo,
  report: UsageReport,
): Promise<void> {
  const { path, by, filter, limit = defaultLimit } = report;
  // One more than is shown, to learn whether there are more.
  const asked = Math.min(limit + 1, largestGroupLimit);
  const query = { ...report.query, limit: asked };
  const answer = readRecord(await client.request("GET", path, { query }));
  const found = readRecords(answer, "data");
  const { since, until } = answer;
  if (found.length === 0) {
    io.report(`There were no calls between ${String(since)} and ${String(until)}.`);
    return;
  }
  const { records, groupCount } = largestGroups(found, limit);
  const names = await findGroupNames(client, { by, records, filter });
  const isSeries = records[0]?.["at"] !== undefined;
  const leading = [...(isSeries ? [{ title: "AT", of: "at" }] : []), ...groupColumns(by, names)];
  // The same period as before, although calls continue.
  const whole = { ...filter, since: String(since), until: String(until) };
  const total = leading.length === 0 ? undefined : await readTotal(client, whole);
  const rows = total === undefined ? records : [...records, total];
  io.print(formatRecords([...withoutTotal(leading, total), ...sumColumns], rows));
  if (groupCount > limit) io.report(`There are more groups than ${limit}: raise --limit.`);
  else if (groupCount >= largestGroupLimit) {
    io.report(
      "There may be more groups: narrow the report, for example with --account or --since.",
    );
  }
}

/** The server computes the totals, because percentiles of groups cannot be added. */
async function readTotal(client: AdminClient, query: AdminQuery): Promise<ReplyRecord | undefined> {
  const [total] = readRecords(await client.request("GET", "/usage/totals", { query }), "data");
  return total;
}

function withoutTotal(
  columns: readonly Column[],
  total: ReplyRecord | undefined,
): readonly Column[] {
  return columns.map(({ title, of }, index) => ({
    title,
    of: (record) => {
      if (record === total) return index === 0 ? "TOTAL" : "";
      return typeof of === "string" ? cellOf(record, of) : of(record);
    },
  }));
}

/** The groups with the most calls; in a series, all their steps. */
function largestGroups(
  records: readonly ReplyRecord[],
  limit: number,
): { readonly records: readonly ReplyRecord[]; readonly groupCount: number } {
  const calls = new Map<string, number>();
  for (const record of records) {
    const name = JSON.stringify(record["group"]);
    calls.set(name, (calls.get(name) ?? 0) + Number(record["calls"]));
  }
  const sorted = [...calls].toSorted(([, one], [, other]) => other - one);
  const shown = new Set(sorted.slice(0, limit).map(([name]) => name));
  return {
    records: records.filter((record) => shown.has(JSON.stringify(record["group"]))),
    groupCount: calls.size,
  };
}
