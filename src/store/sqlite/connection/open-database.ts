import { Database } from "bun:sqlite";
import { existsSync, statSync } from "node:fs";
import { StorageUnavailable, WrongDatabase } from "../../errors.ts";
import { type DatabaseFacts, type DatabaseOwner, factsOfNone } from "../../store.ts";
import { refuseOtherSchema, schemaVersion } from "../../repositories/schema.ts";
import { schema } from "../schema.ts";

// By default, Bun keeps the first 20 statements prepared and prepares all others at each use. There
// are over a hundred, because filters make several out of one.
Database.MAX_QUERY_CACHE_SIZE = 500;

export interface OpenSettings {
  /** Longest wait of one statement for another process, which blocks everything else. */
  readonly busyTimeoutMs: number;
  /** Whether to create a missing or empty database. */
  readonly isCreating: boolean;
  /** Undefined: any database is accepted. */
  readonly owner?: DatabaseOwner | undefined;
}

/**
 * Opens a database, and creates its schema in an empty one. `path` is a file or `:memory:`. Throws
 * SQLite's errors, and `UnusableDatabase`.
 */
export function openDatabase(path: string, settings: OpenSettings): Database {
  const { busyTimeoutMs, isCreating, owner } = settings;
  // SQLite would create the file first.
  if (isCreating && !existsSync(path)) owner?.check(factsOfNone(path, "missing"));
  const database = new Database(path, { create: isCreating, readwrite: true, strict: true });
  try {
    database.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    const facts = readFacts(database, path);
    if (facts.state === "empty" && !isCreating) {
      throw new WrongDatabase(path, "is empty now", "Please put it back in place.");
    }
    owner?.check(facts);
    refuseOtherSchema(facts);
    database.run("PRAGMA journal_mode = WAL");
    // Keys and usage must survive a power cut; batches make that cheap.
    database.run("PRAGMA synchronous = FULL");
    database.run("PRAGMA foreign_keys = ON");
    // What is erased must not be left in the file.
    database.run("PRAGMA secure_delete = ON");
    const isClaimed =
      owner === undefined ||
      (facts.pepperMark !== undefined && owner.claim(facts).pepperMark === facts.pepperMark);
    // Immediate, so that of processes that start together only the first changes it.
    const prepare = database.transaction(() => prepareDatabase(database, path, owner));
    if (facts.version === 0 || !isClaimed) prepare.immediate();
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * Reads a file that a gateway may be using, without changing it. Throws `StorageUnavailable`, and
 * an error for a path that leads to no file.
 */
export function inspectFile(path: string): DatabaseFacts {
  refuseFolder(path);
  if (!existsSync(path)) return factsOfNone(path, "missing");
  try {
    using database = new Database(path, { readonly: true });
    // Longest wait for a process that writes, which blocks everything else.
    database.run("PRAGMA busy_timeout = 1000");
    return readFacts(database, path);
  } catch (error) {
    throw new StorageUnavailable(`the database ${path} cannot be opened`, { cause: error });
  }
}

/** SQLite says only that it cannot open it, which may pass. */
export function refuseFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return;
  throw new Error(`storage.url leads to ${path}, which is a folder; it must be a file`);
}

/** Reads what identifies the owner of a database of any version, without changing it. */
function readFacts(database: Database, path: string): DatabaseFacts {
  const rows = database
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table'")
    .all();
  if (rows.length === 0) return { ...factsOfNone(path, "empty"), version: readVersion(database) };
  const claims = "SELECT id, pepper_mark AS mark FROM installation";
  const claim = rows.some(({ name }) => name === "installation")
    ? database.query<{ id: string; mark: string | null }, []>(claims).get()
    : null;
  return {
    path,
    state: "filled",
    version: readVersion(database),
    installation: claim?.id,
    pepperMark: claim?.mark ?? undefined,
  };
}

/** 0: it is empty. */
function readVersion(database: Database): number {
  const row = database.query<{ user_version: number }, []>("PRAGMA user_version").get();
  return row?.user_version ?? 0;
}

/** Creates the schema in an empty database, and marks it as its owner's. */
function prepareDatabase(database: Database, path: string, owner: DatabaseOwner | undefined): void {
  const facts = readFacts(database, path);
  if (facts.version === 0) {
    database.run(schema);
    database.run(`PRAGMA user_version = ${schemaVersion}`);
  }
  if (owner === undefined) return;
  owner.check(facts);
  const { installation, pepperMark, at } = owner.claim(facts);
  if (facts.pepperMark === pepperMark) return;
  // `pepper_since` is null for the very first pepper.
  database
    .query<unknown, [string, string, number]>(
      `REPLACE INTO installation (place, id, pepper_mark, pepper_since) VALUES (1, ?, ?,
         iif(EXISTS (SELECT 1 FROM installation), ?, NULL))`,
    )
    .run(installation, pepperMark, at);
}
