import type { Database } from "bun:sqlite";
import type { UsageStep } from "../usage-reports.ts";

/** Up to when the sums of a step were removed, since their time was over. */
export function readHorizon(database: Database, step: UsageStep): number {
  const row = database
    .query<{ at: number }, [string]>("SELECT at FROM usage_horizons WHERE step = ?")
    .get(step);
  return row?.at ?? 0;
}

/** Never turns back. In a transaction. */
export function moveHorizon(database: Database, step: UsageStep, at: number): void {
  database
    .query<unknown, [number, string]>("UPDATE usage_horizons SET at = max(at, ?) WHERE step = ?")
    .run(at, step);
}
