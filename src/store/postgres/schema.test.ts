import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { sql } from "kysely";
import { describeWithPostgres } from "../../../test/support/postgres-databases.ts";
import { schema } from "../sqlite/schema.ts";

interface Column {
  readonly table: string;
  readonly column: string;
  readonly isNullable: boolean;
}

describeWithPostgres(({ connect }) => {
  test("both databases have the same tables and columns", async () => {
    const connection = await connect();
    const { rows } = await connection.read((queries) =>
      sql<Column>`
        select table_name as "table", column_name as "column", is_nullable = 'YES' as is_nullable
        from information_schema.columns
        where table_schema = current_schema() and table_name <> 'schema_version'`.execute(queries),
    );
    expect(namesOf(rows)).toEqual(namesOf(columnsInSqlite()));
  });
});

function columnsInSqlite(): Column[] {
  using database = new Database(":memory:");
  database.run(schema);
  // A text as primary key may be null in SQLite.
  return database
    .query<{ table: string; column: string; isNullable: number }, []>(
      `SELECT tables.name AS "table", columns.name AS "column",
         NOT columns."notnull" AND columns.pk = 0 AS isNullable
       FROM sqlite_schema AS tables JOIN pragma_table_info(tables.name) AS columns
       WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite_%'`,
    )
    .all()
    .map((row) => ({ ...row, isNullable: row.isNullable === 1 }));
}

function namesOf(columns: readonly Column[]): readonly string[] {
  return columns
    .map(({ table, column, isNullable }) => `${table}.${column}${isNullable ? "?" : ""}`)
    .toSorted();
}
