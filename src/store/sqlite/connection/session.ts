import type { Database } from "bun:sqlite";
import {
  CamelCasePlugin,
  type CompiledQuery,
  type DatabaseConnection,
  DefaultQueryExecutor,
  DummyDriver,
  Kysely,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import { AlreadyExists, StillInUse, StorageUnavailable } from "../../errors.ts";
import type { Queries, SqlValue, Tables } from "../../repositories/tables.ts";
import { breaksConstraint, constraints } from "./sqlite-trouble.ts";

const dialect = {
  createAdapter: () => new SqliteAdapter(),
  createDriver: () => new DummyDriver(),
  createIntrospector: (queries: Kysely<Tables>) => new SqliteIntrospector(queries),
  createQueryCompiler: () => new SqliteQueryCompiler(),
};
const compiler = dialect.createQueryCompiler();
const adapter = dialect.createAdapter();
const plugins = [new CamelCasePlugin()];

/** Runs the statements of `work` on a connection that is in a transaction. */
export async function inSession<Result>(
  database: Database,
  work: (queries: Queries) => Promise<Result>,
): Promise<Result> {
  const session = new Session(database);
  try {
    return await work(session.queries);
  } finally {
    session.end();
  }
}

/** Runs the statements of one transaction until it ends. */
class Session implements DatabaseConnection {
  readonly queries: Queries;
  readonly #database: Database;
  #hasEnded = false;

  constructor(database: Database) {
    this.#database = database;
    const provider = {
      provideConnection: <Result>(use: (connection: DatabaseConnection) => Promise<Result>) =>
        use(this),
    };
    const executor = new DefaultQueryExecutor(compiler, adapter, provider, plugins);
    const driver = dialect.createDriver();
    this.queries = new Kysely({ config: { dialect }, dialect, driver, executor });
  }

  end(): void {
    this.#hasEnded = true;
  }

  /** Throws `AlreadyExists` for a taken id or name, `StillInUse` for what others refer to. */
  executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    return new Promise((resolve) => resolve(this.#execute(query)));
  }

  async *streamQuery<Row>(query: CompiledQuery): AsyncGenerator<QueryResult<Row>> {
    yield await this.executeQuery(query);
  }

  #execute<Row>({ sql, parameters }: CompiledQuery): QueryResult<Row> {
    if (this.#hasEnded) throw new Error("the transaction has ended");
    // Outside the transaction, a statement would not be rolled back with the others.
    if (!this.#database.inTransaction) {
      throw new StorageUnavailable("the transaction was rolled back");
    }
    try {
      return run(this.#database, sql, parameters.map(toValue));
    } catch (error) {
      throw meaningOf(error);
    }
  }
}

function run<Row>(database: Database, sql: string, values: SqlValue[]): QueryResult<Row> {
  const statement = database.query<Row, SqlValue[]>(sql);
  if (statement.columnNames.length > 0) return { rows: statement.all(...values) };
  return { rows: [], numAffectedRows: BigInt(statement.run(...values).changes) };
}

function toValue(parameter: unknown): SqlValue {
  const isPlain = typeof parameter === "string" || typeof parameter === "number";
  if (isPlain || parameter === null || parameter instanceof Uint8Array) return parameter;
  throw new TypeError(`a column cannot hold a value of the type ${typeof parameter}`);
}

function meaningOf(error: unknown): unknown {
  if (breaksConstraint(error, constraints.primaryKey, constraints.unique)) {
    return new AlreadyExists("the id or name is taken", { cause: error });
  }
  if (breaksConstraint(error, constraints.foreignKey)) {
    return new StillInUse("others refer to it", { cause: error });
  }
  return error;
}
