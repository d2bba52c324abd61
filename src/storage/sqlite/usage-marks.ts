import type { Database } from "bun:sqlite";
import type { UsageStep } from "../usage-reports.ts";

/** A step: up to when its sums were removed. `folded`: up to when minutes are in hours and days. */
export type UsageMark = UsageStep | "folded";

export function readMark(database: Database, name: UsageMark): number {
  const row = database
    .query<{ at: number }, [string]>("SELECT at FROM usage_marks WHERE name = ?")
    .get(name);
  return row?.at ?? 0;
}

/** Never turns a mark back. In a transaction. */
export function writeMark(database: Database, name: UsageMark, at: number): void {
  database
    .query<unknown, [number, string]>("UPDATE usage_marks SET at = max(at, ?) WHERE name = ?")
    .run(at, name);
}
