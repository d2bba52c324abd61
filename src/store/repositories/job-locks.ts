import { sql, type RawBuilder } from "kysely";
import type { SqlConnection } from "./tables.ts";

/** Longer than a run comes late. */
const graceMs = 60_000;

/**
 * Which machine runs a job of the database. It keeps the job while it takes it again in time; else
 * the next machine that asks has it.
 */
export class JobLocks {
  readonly #connection: Pick<SqlConnection, "change">;
  readonly #now: () => RawBuilder<number>;

  /** `now`: the time in milliseconds, of one clock for all machines. */
  constructor(connection: Pick<SqlConnection, "change">, now: () => RawBuilder<number>) {
    this.#connection = connection;
    this.#now = now;
  }

  /** False: another machine has the job. `intervalMs`: until it is run again. */
  async take(job: string, holder: string, intervalMs: number): Promise<boolean> {
    const now = this.#now();
    const heldUntil = sql<number>`${now} + cast(${intervalMs + graceMs} as bigint)`;
    const taken = await this.#connection.change((queries) =>
      queries
        .insertInto("jobLocks")
        .values({ job, holder, heldUntil })
        .onConflict((conflict) =>
          conflict
            .column("job")
            .doUpdateSet({ holder, heldUntil })
            .where((lock) =>
              lock.or([lock("jobLocks.holder", "=", holder), lock("jobLocks.heldUntil", "<", now)]),
            ),
        )
        .returning("job")
        .executeTakeFirst(),
    );
    return taken !== undefined;
  }
}
