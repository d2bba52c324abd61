import { type RawBuilder, sql } from "kysely";
import type { Limits } from "../../domain/limits/plan.ts";
import type { LimitsColumns, Row, SqlValue } from "./tables.ts";

/** A row with undefined for absent values, as in entities. */
type Present<Row> = {
  [Column in keyof Row]: null extends Row[Column]
    ? Exclude<Row[Column], null> | undefined
    : Row[Column];
};

export function present<Row extends object>(row: Row): Present<Row>;
export function present(row: object): object {
  const values: readonly (readonly [string, unknown])[] = Object.entries(row);
  return Object.fromEntries(values.map(([name, value]) => [name, value ?? undefined]));
}

/** The entity as a row, because Kysely skips undefined values. */
export function asRow<Entity extends object>(entity: Entity): Row<Entity>;
export function asRow(entity: Columns): object {
  return withNulls(entity);
}

/** A row with null for absent values, as in tables. */
export type Columns = Readonly<Record<string, SqlValue | undefined>>;

/** Replaces undefined by null, because Kysely skips undefined values. */
export function withNulls(columns: Columns): Record<string, SqlValue> {
  return Object.fromEntries(Object.entries(columns).map(([name, value]) => [name, value ?? null]));
}

/** Reads a column that holds a JSON array of texts. */
export function readTexts(json: string): string[] {
  const list: unknown = JSON.parse(json);
  if (!Array.isArray(list)) throw new Error("the database contains an invalid list");
  return list.map(String);
}

export function writeTexts(texts: readonly string[] | undefined): string | null {
  return texts === undefined ? null : JSON.stringify(texts);
}

export function readLimits(row: LimitsColumns): Limits | undefined {
  const { requestsPerMinute, tokensPerMinute } = row;
  if (requestsPerMinute === null || tokensPerMinute === null) return undefined;
  return { requestsPerMinute, tokensPerMinute };
}

export function writeLimits(limits: Limits | undefined): LimitsColumns {
  return {
    requestsPerMinute: limits?.requestsPerMinute ?? null,
    tokensPerMinute: limits?.tokensPerMinute ?? null,
  };
}

/**
 * A text that every database returns as it was given: without half a surrogate pair, and without
 * NUL, which PostgreSQL refuses.
 */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\ufffd");
}

/** The same with such texts in place of its own; what is nested stays. */
export function storableTexts<Fields extends object>(fields: Fields): Fields;
export function storableTexts(fields: object): object {
  const entries: readonly (readonly [string, unknown])[] = Object.entries(fields);
  return Object.fromEntries(
    entries.map(([name, value]) => [name, typeof value === "string" ? storableText(value) : value]),
  );
}

/** Whether a database returns the text as it was given. */
export function isStorableText(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}

/** The type of each column, in words that SQLite and PostgreSQL both know. */
export type ColumnTypes = Readonly<Record<string, "text" | "bigint" | "double precision">>;

/**
 * Rows as a table in one parameter, with values in the order of the columns: the text of a statement
 * is the same for any number of rows. An object, not an array, because PostgreSQL's `json_each`
 * reads only objects.
 */
export function rowsOf(
  types: ColumnTypes,
  rows: readonly (readonly (string | number | null)[])[],
): RawBuilder<unknown> {
  const columns = Object.entries(types).map(
    ([name, type], index) => `cast(value ->> ${index} as ${type}) as ${name}`,
  );
  const list = sql.raw(columns.join(", "));
  return sql`(select ${list} from json_each(${JSON.stringify(Object.fromEntries(rows.entries()))})) as given`;
}

/** The names of columns as a list. */
export function namesOf(types: ColumnTypes): RawBuilder<unknown> {
  return sql.raw(Object.keys(types).join(", "));
}
