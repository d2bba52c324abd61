import type { UsageRecord } from "../domain/usage/usage.ts";

/** Reads rows of the spool back, to store them in the database. */
export interface ReadBack {
  /**
   * The next rows, `limit` at most and maybe none; undefined at the end. Throws when a file cannot
   * be opened; no row is lost by that, and the call may be repeated.
   */
  next(limit: number): readonly UsageRecord[] | undefined;
  /** Called when all rows are stored. */
  finish(): void;
  /** Stops; the remaining rows stay in the spool. */
  abandon(): void;
}

/** Records of any kind read in one step, so that a step stays short. */
export const recordsAtOnce = 2_000;
