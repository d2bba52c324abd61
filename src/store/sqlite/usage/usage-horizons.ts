import type { Database } from "bun:sqlite";
import type { UsageStep } from "../../../domain/usage/usage-report.ts";

/** Single calls, or the sums of a step. */
export type HorizonOf = "call" | UsageStep;

/** The time before which retention removed these. */
export function readHorizon(database: Database, step: HorizonOf): number {
  const row = database
    .query<{ at: number }, [string]>("SELECT at FROM usage_horizons WHERE step = ?")
    .get(step);
  return row?.at ?? 0;
}

/** Never moves backwards. Needs a transaction. */
export function moveHorizon(database: Database, step: HorizonOf, at: number): void {
  database
    .query<unknown, [number, string]>("UPDATE usage_horizons SET at = max(at, ?) WHERE step = ?")
    .run(at, step);
}
