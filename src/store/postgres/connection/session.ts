import {
  type CompiledQuery,
  type Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
} from "kysely";
import type { ClientBase } from "pg";
import { StorageUnavailable } from "../../errors.ts";
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

export interface SessionOptions {
  /** Whether `work` may handle the refusal of a statement and go on; costs a round trip for each. */
  readonly mayGoOn: boolean;
}

/** Runs the statements of `work` on a connection that is in a transaction. */
export function inSession<Result>(
  client: ClientBase,
  work: (queries: Queries) => Promise<Result>,
  { mayGoOn }: SessionOptions = { mayGoOn: false },
): Promise<Result> {
  const savepoint = new Savepoint(client);
  const run = async <Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> => {
    const isGuarded = mayGoOn && !/^\s*select\b/i.test(sql);
    try {
      if (isGuarded) await savepoint.move();
      const values = parameters.map(storable);
      const { rows, rowCount, command } = await client.query<Row & object>(sql, values);
      if (!changesRows.has(command)) return { rows };
      return { rows, numAffectedRows: BigInt(rowCount ?? 0) };
    } catch (error) {
      const meaning = meaningOf(error);
      if (isGuarded && !(meaning instanceof StorageUnavailable)) await savepoint.restore();
      throw meaning;
    }
  };
  return inSqlSession({ dialect, run }, work);
}

/** What is looked up by a text that cannot be stored is not found, as no row has it. */
function storable(value: unknown): unknown {
  return typeof value === "string" ? storableText(value) : value;
}

/**
 * Undoes a statement that was refused and keeps those before it, as SQLite does by itself, because
 * callers may handle the refusal and go on.
 */
class Savepoint {
  readonly #client: ClientBase;
  #isSet = false;

  constructor(client: ClientBase) {
    this.#client = client;
  }

  /** Before each statement; only one exists, because many are slow. */
  async move(): Promise<void> {
    const release = this.#isSet ? "RELEASE SAVEPOINT refused; " : "";
    await this.#client.query(`${release}SAVEPOINT refused`);
    this.#isSet = true;
  }

  async restore(): Promise<void> {
    try {
      await this.#client.query("ROLLBACK TO SAVEPOINT refused");
    } catch (error) {
      throw meaningOf(error);
    }
  }
}
