import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { StorageUnavailable } from "../../errors.ts";
import type { DatabaseFacts, InspectedDatabase } from "../../installation.ts";
import type { FoundSchema } from "../../schema-version.ts";
import { noDatabase, readFacts } from "./installation-row.ts";
import { isCopy, readVersion } from "./open-database.ts";
import { refuseOddFiles } from "../refuse-odd-files.ts";

/** What decides whether a gateway can use a file. */
export interface FileFacts extends InspectedDatabase {
  readonly database: DatabaseFacts;
  readonly schema: FoundSchema;
}

/** Longest wait for a process that writes, which blocks everything else. */
const busyTimeoutMs = 1_000;

/**
 * Reads a file that a gateway may be using, without changing it. Throws `StorageUnavailable`, and
 * an error for a path that leads to no file.
 */
export function inspectFile(path: string): FileFacts {
  refuseOddFiles(path);
  if (!existsSync(path)) {
    const schema = { name: path, version: 0 };
    return { database: noDatabase(path), isUnfinishedCopy: false, schema };
  }
  try {
    using database = new Database(path, { readonly: true });
    database.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    return {
      database: readFacts(database, path),
      isUnfinishedCopy: isCopy(database),
      schema: { name: path, version: readVersion(database) },
    };
  } catch (error) {
    throw new StorageUnavailable(`the database ${path} cannot be opened`, { cause: error });
  }
}
