import {
  type CompiledQuery,
  type Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
} from "kysely";
import type { ClientBase } from "pg";
import { inSession as inSqlSession, type SqlDialect } from "../../repositories/session.ts";
import type { Queries, Tables } from "../../repositories/tables.ts";
import { storableText } from "../../repositories/row.ts";
import { meaningOf } from "./postgres-trouble.ts";

const adapter = new PostgresAdapter();
const compiler = new PostgresQueryCompiler();
const dialect: SqlDialect = {
  createAdapter: () => adapter,
  createIntrospector: (queries: Kysely<Tables>) => new PostgresIntrospector(queries),
  createQueryCompiler: () => compiler,
};

const changesRows: ReadonlySet<string> = new Set(["INSERT", "UPDATE", "DELETE"]);

/** Runs the statements of `work` on a connection that is in a transaction. */
export function inSession<Result>(
  client: ClientBase,
  work: (queries: Queries) => Promise<Result>,
): Promise<Result> {
  const run = async <Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> => {
    try {
      // What is looked up by a text that cannot be stored is not found, as no row has it.
      const values = parameters.map((value) =>
        typeof value === "string" ? storableText(value) : value,
      );
      const { rows, rowCount, command } = await client.query<Row & object>(sql, values);
      if (!changesRows.has(command)) return { rows };
      return { rows, numAffectedRows: BigInt(rowCount ?? 0) };
    } catch (error) {
      throw meaningOf(error);
    }
  };
  return inSqlSession({ dialect, run }, work);
}
