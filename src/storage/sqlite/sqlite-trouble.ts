import { SQLiteError } from "bun:sqlite";

/** Why the database itself, not what was asked of it, failed. */
export interface SqliteTrouble {
  readonly what: string;
  /**
   * `wait`: another process writes, soon no more. `free_space`: only writing fails, on this
   * connection too once there is room. `reopen`: a new connection may write, this one still reads.
   * `drop`: this connection must not be used any more.
   */
  readonly cure: "wait" | "free_space" | "reopen" | "drop";
}

/** By SQLite's primary result codes, https://sqlite.org/rescode.html. */
const troubles: ReadonlyMap<number, SqliteTrouble> = new Map([
  [3, { what: "may not be accessed", cure: "drop" }],
  [5, { what: "is locked by another process", cure: "wait" }],
  [6, { what: "is locked", cure: "wait" }],
  [7, { what: "got no memory", cure: "free_space" }],
  [8, { what: "is read-only", cure: "reopen" }],
  [10, { what: "cannot be read or written", cure: "drop" }],
  [11, { what: "is damaged", cure: "drop" }],
  [13, { what: "has no room left on the disk", cure: "free_space" }],
  [14, { what: "cannot be opened", cure: "drop" }],
  [15, { what: "is locked by another process", cure: "wait" }],
  [26, { what: "is no database", cure: "drop" }],
]);

/** Undefined for faults of a statement or its data, and for anything that is not SQLite's. */
export function troubleOf(error: unknown): SqliteTrouble | undefined {
  // The lower byte of an extended code is the primary one.
  return error instanceof SQLiteError ? troubles.get(error.errno & 0xff) : undefined;
}

/** SQLite's extended codes of broken constraints that mean something to callers. */
export const constraints = { foreignKey: 787, primaryKey: 1555, unique: 2067 } as const;

export function breaksConstraint(error: unknown, ...codes: readonly number[]): boolean {
  return error instanceof SQLiteError && codes.includes(error.errno);
}
