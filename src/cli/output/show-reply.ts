import { cellOf, formatValue, readRecord, type ReplyRecord } from "./reply-fields.ts";

/** A column of a table: its title, and a field of the answer or a function of the object. */
export interface Column {
  readonly title: string;
  readonly of: string | ((record: ReplyRecord) => string | number);
}

/** A field as a column: `created_at` is CREATED, `account_id` and `account.name` are ACCOUNT. */
export function columnOf(column: string | Column): Column {
  if (typeof column !== "string") return column;
  const words = column.replace(/(?<=.)(?:_at|_id|\..*)$/, "").replaceAll("_", " ");
  return { title: words.toUpperCase(), of: column };
}

export function formatRecords(columns: readonly Column[], records: readonly ReplyRecord[]): string {
  const rows = records.map((record) =>
    columns.map(({ of }) => (typeof of === "string" ? cellOf(record, of) : of(record))),
  );
  const titles = columns.map(({ title }) => title);
  return formatTable(titles, rows);
}

/** Formats one object: a line for each field, and lists of objects as tables below. */
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

/** Columns are as wide as their widest cell; numbers are aligned right. */
function formatTable(
  header: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): string {
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => String(row[column] ?? "").length)),
  );
  const line = (cells: readonly (string | number)[]): string =>
    cells
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return typeof cell === "number" ? String(cell).padStart(width) : cell.padEnd(width);
      })
      .join("  ")
      .trimEnd();
  return [line(header), ...rows.map(line)].join("\n");
}
