import type { Queries } from "./tables.ts";

/** What a SQL dialect provides to the repositories: transactions, one at a time. */
export interface SqlConnection {
  /**
   * Reads one consistent state of the data, in any number of steps. Throws `StorageUnavailable`.
   */
  read<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result>;
  /**
   * Runs a transaction; an error thrown by `work` rolls back. `work` must await only its
   * statements, which fail once it ended. Throws `StorageUnavailable`; statements also throw
   * `AlreadyExists` for a taken id or name and `StillInUse` for rows that others refer to.
   */
  change<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result>;
}
