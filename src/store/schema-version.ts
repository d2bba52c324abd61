import { OtherSchema } from "./errors.ts";

/** The version of the schema of both databases: raise it with each change of a released schema. */
export const schemaVersion = 1;

/** What a database says about its schema. */
export interface FoundSchema {
  /** Of the database, for messages. */
  readonly name: string;
  /** 0: it is empty. */
  readonly version: number;
}

/** Throws `OtherSchema` for a database that another version of Sluice has made. */
export function refuseOtherSchema({ name, version }: FoundSchema): void {
  if (version === 0 || version === schemaVersion) return;
  throw new OtherSchema(
    `the database ${name} has the schema ${version}, and this version of Sluice works with ` +
      `schema ${schemaVersion}. Please use the version that made it, or an empty database.`,
  );
}
