import type { UsageRecord } from "../domain/usage/usage.ts";

/** Rows of the spool on their way back to the database. */
export interface ReadBack {
  /**
   * The next rows, at most `limit` and perhaps none; undefined when there are no more. Throws when a
   * file cannot be opened; no row is lost by that, and it may be asked again.
   */
  next(limit: number): readonly UsageRecord[] | undefined;
  /** All of them are stored. */
  finish(): void;
  /** The rest stays in the spool. */
  abandon(): void;
}

/** Records looked at in one step, whatever they are, so that a step stays short. */
export const recordsAtOnce = 2_000;
