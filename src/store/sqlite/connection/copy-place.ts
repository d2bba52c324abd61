import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { sql } from "kysely";
import { UnusableDatabase } from "../../errors.ts";
import {
  CopyRefused,
  type CopySource,
  type CopyTarget,
  refuseSource,
} from "../../repositories/copy-database.ts";
import type { Queries, SqlValue } from "../../repositories/tables.ts";
import { inspectFile, openDatabase } from "./open-database.ts";
import { beginChange, inSession, undo } from "./session.ts";
import { troubleOf } from "./sqlite-trouble.ts";

const busyTimeoutMs = 2_000;

/** Opens an existing file that no other process has open. Throws `CopyRefused`. */
export function openSource(path: string): CopySource {
  try {
    if (!existsSync(path)) throw new CopyRefused(`there is no ${path}`);
    refuseSource(inspectFile(path).schema);
    return new ExclusiveFile(path);
  } catch (error) {
    throw refusalOf(path, error);
  }
}

/** The same for a file that may have to be created. */
export function openTarget(path: string): CopyTarget {
  try {
    openDatabase(path, { busyTimeoutMs, isCreating: true }).close();
    return new ExclusiveFile(path);
  } catch (error) {
    throw refusalOf(path, error);
  }
}

class ExclusiveFile implements CopyTarget {
  readonly name: string;
  readonly #database: Database;

  constructor(path: string) {
    this.name = path;
    this.#database = new Database(path, { create: false, readwrite: true, strict: true });
    try {
      this.#database.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
      // Set before the first use of the file, it also excludes readers, such as an idle gateway.
      this.#database.run("PRAGMA locking_mode = EXCLUSIVE");
      beginChange(this.#database);
      this.#database.run("COMMIT");
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  async transact<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result> {
    beginChange(this.#database);
    try {
      const result = await inSession(this.#database, work);
      this.#database.run("COMMIT");
      return result;
    } catch (error) {
      undo(this.#database);
      throw error;
    }
  }

  /** Prepared once, because queries built for each row take most of the time. */
  insert(...[, table, rows]: Parameters<CopyTarget["insert"]>): Promise<void> {
    const columns = Object.keys(rows[0] ?? {});
    const marks = columns.map(() => "?").join(", ");
    const statement = this.#database.query<unknown, SqlValue[]>(
      `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${marks})`,
    );
    for (const row of rows) statement.run(...columns.map((column) => row[column] ?? null));
    return Promise.resolve();
  }

  async finish(queries: Queries): Promise<void> {
    await sql`analyze`.execute(queries);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#database.close();
    return Promise.resolve();
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
