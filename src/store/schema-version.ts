import { SchemaTooNew, SchemaTooOld } from "./errors.ts";

/** A step of the schema. Steps are applied in order, and a database counts those it has. */
export interface Migration {
  readonly name: string;
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

/** Of an empty database. */
export const noSchema: SchemaVersion = { version: 0, compatibleSince: 0 };

/** The schema that a program writes. */
export function newestSchema(migrations: readonly Migration[]): SchemaVersion {
  const compatibleSince = Math.max(...migrations.map((step) => step.compatibleSince));
  return { version: migrations.length, compatibleSince };
}

/** What is known of a schema, and of the program that opens it. */
export interface SchemaCheck {
  /** Of the database, for messages. */
  readonly name: string;
  readonly found: SchemaVersion;
  readonly migrations: readonly Migration[];
}

/** Throws `SchemaTooNew` if the program must not use the database. */
export function refuseIfTooNew({ name, found, migrations }: SchemaCheck): void {
  const { version, compatibleSince } = found;
  const known = migrations.length;
  if (version <= known || compatibleSince <= known) return;
  throw new SchemaTooNew(
    `the database ${name} was written by a newer version of Sluice: its schema is ${version}, ` +
      `which needs programs of schema ${compatibleSince} or newer, and this one is of ${known}. ` +
      "Please install a newer version here.",
  );
}

/** The steps that a database lacks. Throws `SchemaTooNew`, and `SchemaTooOld` for any of them. */
export function stepsToRun(check: SchemaCheck, mayRun: boolean): readonly Migration[] {
  refuseIfTooNew(check);
  const { name, found, migrations } = check;
  const due = migrations.slice(found.version);
  if (mayRun || due.length === 0) return due;
  const state = found.version === 0 ? "has no schema yet" : `has the schema ${found.version}`;
  throw new SchemaTooOld(
    `the database ${name} ${state}, and this version needs ${migrations.length}. ` +
      "Please run `sluice migrate` first.",
  );
}
