import { OtherSchema } from "./errors.ts";
import type { DatabaseFacts } from "./store.ts";

/** The version of the schema of both databases: raise it with each change of a released schema. */
export const schemaVersion = 1;

/** Throws `OtherSchema` for a database that another version of Sluice has made. */
export function refuseOtherSchema({
  path,
  version,
}: Pick<DatabaseFacts, "path" | "version">): void {
  if (version === 0 || version === schemaVersion) return;
  throw new OtherSchema(
    `the database ${path} has the schema ${version}, and this version of Sluice works with ` +
      `schema ${schemaVersion}. Please use the version that made it, or an empty database.`,
  );
}
