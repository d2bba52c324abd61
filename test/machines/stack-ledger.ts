import pg from "pg";
import type { StackCall } from "./stack-load.ts";

export interface LedgerCheck {
  /** Admitted calls without a row. */
  readonly lost: number;
  /** Calls with more than one row. */
  readonly doubled: number;
  /** The difference between the rows and the calls that the sums have. */
  readonly miscounted: number;
}

/** Compares the admitted calls of a load with the rows of the database. */
export async function checkLedger(
  storageUrl: string,
  calls: readonly StackCall[],
): Promise<LedgerCheck> {
  const client = new pg.Client({ connectionString: storageUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ id: string; count: string }>(
      "SELECT id, count(*) AS count FROM usage GROUP BY id",
    );
    const counts = new Map(rows.map(({ id, count }) => [id, Number(count)]));
    // One statement, so that a batch is in both or in neither.
    const sums = await client.query<{ difference: string }>(
      `SELECT (SELECT count(*) FROM usage)
         - (SELECT coalesce(sum(calls), 0) FROM usage_sums WHERE grain = 'hour') AS difference`,
    );
    const admitted = calls.filter(({ status }) => status === 200);
    return {
      lost: admitted.filter(({ requestId }) => !counts.has(requestId)).length,
      doubled: [...counts.values()].filter((count) => count > 1).length,
      miscounted: Math.abs(Number(sums.rows[0]?.difference)),
    };
  } finally {
    await client.end();
  }
}

/** Waits until every admitted call has its row. */
export async function untilStored(
  storageUrl: string,
  calls: readonly StackCall[],
): Promise<LedgerCheck> {
  for (;;) {
    const check = await checkLedger(storageUrl, calls);
    if (check.lost === 0) return check;
    await Bun.sleep(200);
  }
}
