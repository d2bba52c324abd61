import { type RawBuilder, sql } from "kysely";

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
