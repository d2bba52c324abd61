import type { AdminClient, AdminQuery } from "../client/admin-client.ts";
import type { OptionSpecs } from "../arguments.ts";
import { exitCodes } from "../../process/exit-codes.ts";
import { UsageError } from "../command.ts";
import { cellOf, formatValue, readRecord, readRecords, type ReplyRecord } from "./reply-fields.ts";
import { formatTable } from "./table.ts";
import type { VerbCall } from "../verb.ts";

/** A column of a table: its title and the field of the answer, or what to make of the object. */
export interface Column {
  readonly title: string;
  readonly of: string | ((record: ReplyRecord) => string | number);
}

export const pageOptions = {
  limit: { type: "string", value: "N", about: "most entries to show (default 50)" },
  cursor: { type: "string", value: "CURSOR", about: "go on where a list ended" },
} as const satisfies OptionSpecs;

/** Most items of one page of the admin API. */
const pageLimit = 500;

export interface ListRequest {
  readonly path: string;
  readonly query: AdminQuery;
  readonly columns: readonly Column[];
  /** Told when the list is empty. */
  readonly whenEmpty: string;
}

/** Reads a list, page by page, and prints it as a table or as JSON. */
export async function showList(
  call: VerbCall<keyof typeof pageOptions>,
  request: ListRequest,
): Promise<number> {
  const { args, client, io, isJson } = call;
  const limit = args.count("limit") ?? 50;
  if (limit < 1) throw new UsageError("--limit must be 1 or more");
  const list = await readList(client, request, { limit, cursor: args.text("cursor") });
  if (isJson) io.print(JSON.stringify(list));
  else if (list.data.length === 0) io.report(request.whenEmpty);
  else {
    io.print(formatRecords(request.columns, list.data));
    if (list.next_cursor !== null) io.report(`There are more: --cursor ${list.next_cursor}`);
  }
  return exitCodes.ok;
}

interface ReplyList {
  readonly data: readonly ReplyRecord[];
  readonly next_cursor: string | null;
}

interface ListRange {
  readonly limit: number;
  readonly cursor: string | undefined;
}

async function readList(
  client: AdminClient,
  { path, query }: ListRequest,
  range: ListRange,
): Promise<ReplyList> {
  const data: ReplyRecord[] = [];
  let { cursor } = range;
  for (;;) {
    const limit = Math.min(range.limit - data.length, pageLimit);
    const page = readRecord(
      await client.request("GET", path, { query: { ...query, limit, cursor } }),
    );
    const items = readRecords(page, "data");
    data.push(...items);
    const next = page["next_cursor"];
    if (typeof next !== "string") return { data, next_cursor: null };
    if (data.length >= range.limit || items.length === 0) return { data, next_cursor: next };
    cursor = next;
  }
}

export function formatRecords(columns: readonly Column[], records: readonly ReplyRecord[]): string {
  const rows = records.map((record) =>
    columns.map(({ of }) => (typeof of === "string" ? cellOf(record, of) : of(record))),
  );
  const titles = columns.map(({ title }) => title);
  return formatTable(titles, rows);
}

/** Prints one object: a line for each field, lists of objects as tables below. */
export function showRecord({ io, isJson }: Pick<VerbCall, "io" | "isJson">, answer: unknown): void {
  io.print(isJson ? JSON.stringify(answer) : formatRecord(readRecord(answer)));
}

export function formatRecord(record: ReplyRecord): string {
  const fields = Object.entries(record);
  const plain = fields.filter(([, value]) => !isTable(value));
  const width = Math.max(...plain.map(([name]) => name.length));
  const lines = plain.map(([name, value]) => `${name.padEnd(width)}  ${formatField(value)}`);
  const tables = fields.flatMap(([name, value]) =>
    isTable(value) ? [formatPart(name, value)] : [],
  );
  return [lines.join("\n"), ...tables].join("\n\n");
}

function formatField(value: unknown): string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return String(formatValue(value));
  }
  return Object.entries(value)
    .map(([name, part]) => `${name} ${formatValue(part)}`)
    .join(", ");
}

function isTable(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.some((item) => typeof item === "object" && item !== null);
}

function formatPart(name: string, values: readonly unknown[]): string {
  const records = values.map(readRecord);
  const names = [...new Set(records.flatMap((record) => Object.keys(record)))];
  const columns = names.map((field) => ({ title: field.toUpperCase(), of: field }));
  return `${name}:\n${formatRecords(columns, records)}`;
}
