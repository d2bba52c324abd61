import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { StorageUnavailable } from "../../errors.ts";
import { noSchema, type SchemaCheck, type SchemaVersion } from "../../schema-version.ts";
import { migrations } from "./migrations.ts";

/** The schema of a database of any version. */
export function readSchema(database: Database): SchemaVersion {
  const row = database.query<{ user_version: number }, []>("PRAGMA user_version").get();
  const version = row?.user_version ?? 0;
  return { version, compatibleSince: readCompatible(database, version) ?? version };
}

export function writeSchema(database: Database, { version, compatibleSince }: SchemaVersion): void {
  database
    .query<unknown, [number, number]>("UPDATE schema_version SET version = ?, compatible_since = ?")
    .run(version, compatibleSince);
  database.run(`PRAGMA user_version = ${version}`);
}

/** Reads the schema of a file, without changing it. Throws `StorageUnavailable`. */
export function inspectSchema(path: string): SchemaCheck {
  if (!existsSync(path)) return { name: path, found: noSchema, migrations };
  try {
    using database = new Database(path, { readonly: true });
    return { name: path, found: readSchema(database), migrations };
  } catch (error) {
    throw new StorageUnavailable(`the database ${path} cannot be opened`, { cause: error });
  }
}

/** Undefined in schemas from before the table. */
function readCompatible(database: Database, version: number): number | undefined {
  const tables = database.query("SELECT 1 FROM sqlite_schema WHERE name = 'schema_version'");
  if (tables.get() === null) return undefined;
  const since = "SELECT compatible_since AS since FROM schema_version WHERE version = ?";
  return database.query<{ since: number }, [number]>(since).get(version)?.since;
}
