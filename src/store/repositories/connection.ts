import type { AuditSeals } from "../../domain/audit/audit-seals.ts";
import type { Queries } from "./tables.ts";

/** What a dialect gives to the repositories: transactions, one after another. */
export interface SqlConnection {
  /** What the audit is sealed with. Throws when it is not known. */
  readonly seals: AuditSeals;
  /** Reads one state of the data, however many steps `work` takes. Throws `StorageUnavailable`. */
  read<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result>;
  /**
   * All or nothing: what `work` throws undoes all it did. `work` must wait for nothing else, and
   * its statements fail once it ended. Throws `StorageUnavailable`; statements also
   * `AlreadyExists` for a taken id or name, and `StillInUse` for what others refer to.
   */
  change<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result>;
}
