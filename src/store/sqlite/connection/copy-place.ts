import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { UnusableDatabase } from "../../errors.ts";
import { type CopyPlace, CopyRefused, refuseSource } from "../../repositories/copy-database.ts";
import { inspectFile, openDatabase } from "./open-database.ts";
import { beginChange, inSession, undo } from "./session.ts";
import { troubleOf } from "./sqlite-trouble.ts";

const busyTimeoutMs = 2_000;

/** Opens a file that no other process has open. Throws `CopyRefused`. */
export function openFile(
  path: string,
  { isCreating }: { readonly isCreating: boolean },
): CopyPlace {
  try {
    if (isCreating) openDatabase(path, { busyTimeoutMs, isCreating }).close();
    else if (existsSync(path)) refuseSource(inspectFile(path));
    else throw new CopyRefused(`there is no ${path}`);
    const database = openAlone(path);
    return {
      name: path,
      async transact(work) {
        beginChange(database);
        try {
          const result = await inSession(database, work);
          database.run("COMMIT");
          return result;
        } catch (error) {
          undo(database);
          throw error;
        }
      },
      [Symbol.asyncDispose]: () => Promise.resolve(database.close()),
    };
  } catch (error) {
    throw refusalOf(path, error);
  }
}

function openAlone(path: string): Database {
  const database = new Database(path, { create: false, readwrite: true, strict: true });
  try {
    database.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    // Set before the first use of the file, it also excludes readers, such as an idle gateway.
    database.run("PRAGMA locking_mode = EXCLUSIVE");
    beginChange(database);
    database.run("COMMIT");
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function refusalOf(path: string, error: unknown): unknown {
  if (error instanceof CopyRefused) return error;
  if (error instanceof UnusableDatabase) return new CopyRefused(error.message);
  const trouble = troubleOf(error);
  if (trouble?.cure === "wait") {
    return new CopyRefused(`${path} is in use. Please stop its gateway first.`);
  }
  const what = trouble?.what ?? "cannot be opened";
  return error instanceof Error ? new CopyRefused(`${path} ${what}`, { cause: error }) : error;
}
