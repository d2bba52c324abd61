import { SQLiteError } from "bun:sqlite";
import { WrongDatabase } from "../../errors.ts";

/** Why the database itself, not what was asked of it, failed. */
export interface SqliteTrouble {
  readonly what: string;
  /**
   * `wait`: another process writes, soon no more. `free_space`: only writing fails, on this
   * connection too once there is room. `reopen`: a new connection may write, this one still reads.
   * `drop`: this connection must not be used any more. `restore`: nor must the file.
   */
  readonly cure: "wait" | "free_space" | "reopen" | "drop" | "restore";
}

/** What SQLite says when it meets a page that cannot be. */
export const damaged: SqliteTrouble = { what: "is damaged", cure: "restore" };

/** By SQLite's primary result codes, https://sqlite.org/rescode.html. */
const troubles: ReadonlyMap<number, SqliteTrouble> = new Map([
  [3, { what: "may not be accessed", cure: "drop" }],
  [5, { what: "is locked by another process", cure: "wait" }],
  [6, { what: "is locked", cure: "wait" }],
  [7, { what: "got no memory", cure: "free_space" }],
  [8, { what: "is read-only", cure: "reopen" }],
  [10, { what: "cannot be read or written", cure: "drop" }],
  [11, damaged],
  [13, { what: "has no room left on the disk", cure: "free_space" }],
  [14, { what: "cannot be opened", cure: "drop" }],
  [15, { what: "is locked by another process", cure: "wait" }],
  [26, { what: "is no database", cure: "restore" }],
]);

/** Undefined for faults of a statement or its data, and for what callers threw. */
export function troubleOf(error: unknown): SqliteTrouble | undefined {
  if (error instanceof WrongDatabase) return { what: error.what, cure: "restore" };
  // The lower byte of an extended code is the primary one.
  return error instanceof SQLiteError ? troubles.get(error.errno & 0xff) : undefined;
}

/** Whether nothing can be read any more through this connection. */
export function stopsReading({ cure }: SqliteTrouble): boolean {
  return cure === "drop" || cure === "restore";
}

/** SQLite's extended codes of broken constraints that mean something to callers. */
export const constraints = { foreignKey: 787, primaryKey: 1555, unique: 2067 } as const;

export function breaksConstraint(error: unknown, ...codes: readonly number[]): boolean {
  return error instanceof SQLiteError && codes.includes(error.errno);
}
