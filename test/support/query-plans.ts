import type { SqliteConnection } from "../../src/store/sqlite/connection/connection.ts";

/** The plan of a statement that was run, one line for each step. */
export interface QueryPlan {
  readonly sql: string;
  readonly steps: readonly string[];
}

/** SQLite's plan of each statement that `work` runs on the connection. */
export async function plansOf(
  connection: SqliteConnection,
  work: () => Promise<unknown>,
): Promise<readonly QueryPlan[]> {
  const plans: QueryPlan[] = [];
  const database = await connection.use((opened) => opened);
  const query = database.query.bind(database);
  database.query = (sql: string) => {
    // Finalized: SQLite does not commit while another statement seems to be in progress.
    using explain = database.prepare<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`);
    const steps = explain.all();
    const isLook = sql.includes("sqlite_schema");
    if (steps.length > 0 && !isLook) plans.push({ sql, steps: steps.map(({ detail }) => detail) });
    return query(sql);
  };
  try {
    await work();
  } finally {
    database.query = query;
  }
  return plans;
}
