import { SQLiteError } from "bun:sqlite";
import { AlreadyExists, StillInUse, WrongDatabase } from "../../errors.ts";

/** A failure of the database itself, not of a statement. */
export interface SqliteTrouble {
  readonly what: string;
  /**
   * `wait`: another process is writing. `change`: only writing fails, until there is room. `reopen`:
   * only writing fails, over this connection. `drop`: this connection must not be used any more.
   * `restore`: nor must the file.
   */
  readonly cure: "wait" | "change" | "reopen" | "drop" | "restore";
}

/** Failures by SQLite's primary result codes, https://sqlite.org/rescode.html. */
const troubles: ReadonlyMap<number, SqliteTrouble> = new Map([
  [3, { what: "may not be accessed", cure: "drop" }],
  [5, { what: "is locked by another process", cure: "wait" }],
  [6, { what: "is locked", cure: "wait" }],
  [7, { what: "ran out of memory", cure: "change" }],
  [8, { what: "is read-only", cure: "reopen" }],
  [10, { what: "cannot be read or written", cure: "drop" }],
  [11, { what: "is damaged", cure: "restore" }],
  [13, { what: "has no room left on the disk", cure: "change" }],
  [14, { what: "cannot be opened", cure: "drop" }],
  [15, { what: "is locked by another process", cure: "wait" }],
  [26, { what: "is not a database", cure: "restore" }],
]);

/** Undefined for errors of a statement, its data or its caller. */
export function troubleOf(error: unknown): SqliteTrouble | undefined {
  if (error instanceof WrongDatabase) return { what: error.what, cure: "restore" };
  // The lower byte of an extended code is the primary one.
  return error instanceof SQLiteError ? troubles.get(error.errno & 0xff) : undefined;
}

const [foreignKey, primaryKey, unique] = [787, 1555, 2067];

/** Primary codes of values that a column refuses: TOOBIG, CONSTRAINT and MISMATCH. */
const faultsOfData: readonly number[] = [18, 19, 20];

export function isFaultOfData(error: unknown): boolean {
  return error instanceof SQLiteError && faultsOfData.includes(error.errno & 0xff);
}

/** The error of a statement as callers handle it, by SQLite's extended code. */
export function meaningOf(error: unknown): unknown {
  switch (error instanceof SQLiteError ? error.errno : undefined) {
    case primaryKey:
    case unique:
      return new AlreadyExists("the id or name is taken", { cause: error });
    case foreignKey:
      return new StillInUse("others refer to it", { cause: error });
    default:
      return error;
  }
}
