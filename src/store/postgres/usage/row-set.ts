import { type RawBuilder, sql } from "kysely";

/** Values by column. */
export type SetRow = Readonly<Record<string, unknown>>;

/**
 * Rows as a table in one parameter: the text of a statement is the same for any number of rows, of
 * which 65,535 parameters would be too few. Columns have the types of `table`.
 */
export function rowsOf(table: string, rows: readonly SetRow[]): RawBuilder<unknown> {
  return sql`json_populate_recordset(null::${sql.table(table)}, ${JSON.stringify(rows)})`;
}
