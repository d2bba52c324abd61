import { SchemaTooNew } from "./errors.ts";

/** A step of the schema. Steps are applied in order, and a database counts those it has. */
export interface Migration {
  readonly sql: string;
  /**
   * The oldest schema whose programs can read and write a database that has this step. The step's
   * own number: all programs from before it must have stopped.
   */
  readonly compatibleSince: number;
}

/** What a database says about its schema. */
export interface SchemaVersion {
  /** How many steps it has. */
  readonly version: number;
  readonly compatibleSince: number;
}

/** The schema that a program writes. */
export function newestSchema(migrations: readonly Migration[]): SchemaVersion {
  const compatibleSince = Math.max(...migrations.map((step) => step.compatibleSince));
  return { version: migrations.length, compatibleSince };
}

/** Throws `SchemaTooNew` if a program whose newest schema is `known` must not use a database. */
export function refuseIfTooNew(
  { version, compatibleSince }: SchemaVersion,
  known: number,
  name: string,
): void {
  if (version <= known || compatibleSince <= known) return;
  throw new SchemaTooNew(
    `the database ${name} was written by a newer version of Sluice: its schema is ${version}, ` +
      `which needs programs of schema ${compatibleSince} or newer, and this one is of ${known}. ` +
      "Please install a newer version here.",
  );
}
