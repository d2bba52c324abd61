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
import type { Queries } from "./tables.ts";

/** How a SQL dialect writes statements; they run on a connection of our own. */
export type SqlDialect = Omit<Dialect, "createDriver">;

/** Runs one statement of a transaction. */
export type RunStatement = <Row>(query: CompiledQuery) => Promise<QueryResult<Row>>;

const plugins = [new CamelCasePlugin()];

/** Runs the statements of `work` by `run`, which must be in a transaction. */
export async function inSession<Result>(
  parts: SessionParts,
  work: (queries: Queries) => Promise<Result>,
): Promise<Result> {
  const session = new Session(parts);
  try {
    return await work(session.queries);
  } finally {
    session.end();
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
  #hasEnded = false;

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

  end(): void {
    this.#hasEnded = true;
  }

  executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    if (this.#hasEnded) return Promise.reject(new Error("the transaction has ended"));
    return this.#run(query);
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
