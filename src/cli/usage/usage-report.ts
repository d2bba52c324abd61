import { isObject } from "../../domain/json-object.ts";
import type { AdminClient, AdminQuery } from "../client/admin-client.ts";
import { shortUsd } from "../output/usd.ts";
import type { CommandIo } from "../command.ts";
import {
  cellOf,
  formatValue,
  readRecord,
  readRecords,
  type ReplyRecord,
} from "../output/reply-fields.ts";
import { formatRecords, type Column } from "../output/show-reply.ts";

/** Most groups of one answer of the admin API. */
export const largestGroupLimit = 1000;
const defaultLimit = 100;

export interface UsageReport {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
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
  { title: "USD", of: costOf },
  { title: "MS P50", of: "duration_ms.p50" },
  { title: "P95", of: "duration_ms.p95" },
  { title: "P99", of: "duration_ms.p99" },
];

/** Exact, without zeros at the end; a sum that lacks calls without a price says so. */
function costOf({ cost_usd: cost, unpriced_calls: unpriced }: ReplyRecord): string {
  if (typeof cost !== "string") return Number(unpriced) > 0 ? "not priced" : "-";
  return `${Number(unpriced) > 0 ? ">= " : ""}${shortUsd(cost)}`;
}

/**
 * Prints sums as a table: groups with names, a line with the total, and a note if groups may be
 * left out.
 */
export async function showUsageReport(
  { client, io }: ReportIo,
  { path, query }: UsageReport,
): Promise<void> {
  const { by = "", step: _, rest: _rest, limit = String(defaultLimit), ...filter } = query;
  const answer = readRecord(await client.request("GET", path, { query: { ...query, limit } }));
  const records = readRecords(answer, "data");
  const { since, until } = answer;
  const [first] = records;
  if (first === undefined) {
    io.report(`There were no calls between ${String(since)} and ${String(until)}.`);
    return;
  }
  const dimensions = by.split(",").filter(Boolean);
  const leading: Column[] = first["at"] === undefined ? [] : [{ title: "AT", of: "at" }];
  leading.push(...dimensions.flatMap((dimension) => columnsOf(dimension, first)));
  // The same period as before, although calls continue.
  const whole = { ...filter, since: String(since), until: String(until) };
  const total = leading.length === 0 ? undefined : await readTotal(client, whole);
  const rows = total === undefined ? records : [...records, total];
  io.print(formatRecords([...withoutTotal(leading, total), ...sumColumns], rows));
  for (const dimension of dimensions.filter((name) => name.startsWith("tag:"))) {
    const has = ({ group }: ReplyRecord) => isObject(group) && typeof group[dimension] === "string";
    if (records.some(has)) continue;
    const key = dimension.slice("tag:".length);
    io.report(`No call here has the tag ${key}: is it under \`tags\` in the configuration?`);
  }
  const groups = new Set(records.map(({ group }) => JSON.stringify(group)));
  if (dimensions.length > 0 && groups.size >= Number(limit) && query["rest"] === undefined) {
    io.report(
      `There may be more groups than ${limit}: raise --limit, or narrow the report, for example with ` +
        "--account or --since.",
    );
  }
}

/** The value of a dimension, and its name if it has one. */
function columnsOf(dimension: string, { names }: ReplyRecord): readonly Column[] {
  const value: Column = {
    title: dimension.toUpperCase(),
    of: ({ group }) => {
      if (!isObject(group)) return "";
      return Object.keys(group).length === 0 ? "OTHERS" : formatValue(group[dimension]);
    },
  };
  if (!isObject(names) || !(dimension in names)) return [value];
  return [value, { title: "NAME", of: `names.${dimension}` }];
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
