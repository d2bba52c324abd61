import {
  CamelCasePlugin,
  type KyselyPlugin,
  type CompiledQuery,
  type DatabaseConnection,
  DefaultQueryExecutor,
  type Dialect,
  DummyDriver,
  Kysely,
  type QueryResult,
} from "kysely";
import { StorageUnavailable } from "../errors.ts";
import type { Queries } from "./tables.ts";

/** How a SQL dialect writes statements; they run on a connection of our own. */
export type SqlDialect = Omit<Dialect, "createDriver">;

/** Runs one statement of a transaction. */
export type RunStatement = <Row>(query: CompiledQuery) => Promise<QueryResult<Row>>;

const plugins = [new CamelCasePlugin()];

/**
 * Runs the statements of `work` by `run`, which must be in a transaction. A statement that fails ends
 * it, as PostgreSQL does by itself, even if `work` catches the error.
 */
export async function inSession<Result>(
  parts: SessionParts,
  work: (queries: Queries) => Promise<Result>,
): Promise<Result> {
  const session = new Session(parts);
  try {
    const result = await work(session.queries);
    if (session.hasFailed) throw new StorageUnavailable("a statement of the transaction failed");
    return result;
  } finally {
    session.hasEnded = true;
  }
}

export interface SessionParts {
  readonly dialect: SqlDialect;
  readonly run: RunStatement;
}

/** Runs the statements of one transaction until it ends. */
class Session implements DatabaseConnection {
  readonly queries: Queries;
  readonly #run: RunStatement;
  hasEnded = false;
  hasFailed = false;

  constructor({ dialect: parts, run }: SessionParts) {
    this.#run = run;
    const dialect = { ...parts, createDriver: () => new DummyDriver() };
    const provider = {
      provideConnection: <Result>(use: (connection: DatabaseConnection) => Promise<Result>) =>
        use(this),
    };
    const executor = new DefaultQueryExecutor(
      dialect.createQueryCompiler(),
      dialect.createAdapter(),
      provider,
      plugins,
    );
    this.queries = new Kysely({
      config: { dialect },
      dialect,
      driver: dialect.createDriver(),
      executor,
    });
  }

  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    if (this.hasEnded) throw new Error("the transaction has ended");
    try {
      return await this.#run(query);
    } catch (error) {
      this.hasFailed = true;
      throw error;
    }
  }

  async *streamQuery<Row>(query: CompiledQuery): AsyncGenerator<QueryResult<Row>> {
    yield await this.executeQuery(query);
  }
}

const names = new CamelCasePlugin();
const ofQueries: KyselyPlugin = {
  transformQuery: (query) => names.transformQuery(query),
  transformResult: ({ result }) => Promise.resolve(result),
};

/** Skips the renaming of columns, which is slow for many rows. */
export function withRawRows(queries: Queries): Queries {
  return queries.withoutPlugins().withPlugin(ofQueries);
}
