import { sql, type RawBuilder } from "kysely";
import type { SqlConnection } from "./tables.ts";

/** Longer than a run comes late. */
const graceMs = 60_000;

/**
 * Which machine runs a job of the database. It keeps the job while it takes it again in time; else
 * the next machine that asks has it. `now`: the time in milliseconds, of one clock for all machines.
 */
export function jobLocksIn(
  connection: Pick<SqlConnection, "change">,
  now: () => RawBuilder<number>,
) {
  return {
    /** False: another machine has the job. `intervalMs`: until it is run again. */
    async take(job: string, holder: string, intervalMs: number): Promise<boolean> {
      const heldUntil = sql<number>`${now()} + cast(${intervalMs + graceMs} as bigint)`;
      const taken = sql`
        insert into job_locks as stored (job, holder, held_until)
        values (${job}, ${holder}, ${heldUntil})
        on conflict (job) do update set holder = excluded.holder, held_until = excluded.held_until
        where stored.holder = excluded.holder or stored.held_until < ${now()} returning job`;
      return (await connection.change((queries) => taken.execute(queries))).rows.length > 0;
    },
  };
}
