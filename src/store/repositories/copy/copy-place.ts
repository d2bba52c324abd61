import { type FoundSchema, refuseOtherSchema, schemaVersion } from "../../schema-version.ts";
import type { Queries, SqlValue } from "../tables.ts";

/** A row by the names of its columns in the database. */
export type CopiedRow = Readonly<Record<string, SqlValue>>;

/** A database that nobody else changes while it is open. */
export interface CopyPlace extends AsyncDisposable {
  /** For messages. */
  readonly name: string;
  transact<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result>;
}

export interface CopyTarget extends CopyPlace {
  insert(queries: Queries, table: string, rows: readonly CopiedRow[]): Promise<void>;
  /** Prepares the complete copy for use. */
  finish(queries: Queries): Promise<void>;
}

/** The table of an unfinished copy, by which gateways refuse it. */
export const progressTable = "sluice_copy";

/** Throws for a source or target without the schema of this program. */
export function refuseOldSchema(found: FoundSchema): void {
  refuseOtherSchema(found);
  if (found.version !== schemaVersion) throw new CopyRefused(`${found.name} is empty`);
}

/** Why databases cannot be copied, for the operator. */
export class CopyRefused extends Error {
  override readonly name = "CopyRefused";
}
