import type { Limits } from "../../domain/limits/plan.ts";
import type { LimitsColumns, SqlValue } from "./tables.ts";

/** A row as entities have it: what is not there is undefined. */
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

/** A row as a table takes it: what is not there is null. */
export type Columns = Readonly<Record<string, SqlValue | undefined>>;

/** The same with null for what is undefined; Kysely would leave it out. */
export function withNulls(columns: Columns): Record<string, SqlValue> {
  return Object.fromEntries(Object.entries(columns).map(([name, value]) => [name, value ?? null]));
}

/** Reads a column that holds texts as a JSON array. */
export function readTexts(json: string): string[] {
  const list: unknown = JSON.parse(json);
  if (!Array.isArray(list)) throw new Error("the database holds a list that is none");
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
