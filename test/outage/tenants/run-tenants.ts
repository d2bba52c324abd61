import { brokenRow, type Row } from "../report/table.ts";
import { judgeTenants, tenantColumns, type TenantLimits } from "./judge-tenants.ts";
import { runScenario, type TenantPlan } from "./run-scenario.ts";
import type { Scenario } from "./scenarios.ts";

export interface TenantsRun {
  readonly scenarios: readonly Scenario[];
  readonly plan: TenantPlan;
  readonly limits: TenantLimits;
  /** The number of concurrent scenarios. */
  readonly parallel: number;
  /** Ends the run with everything it started. */
  readonly signal: AbortSignal;
  readonly onRow: (row: Row) => void;
}

/** Runs the scenarios, a few at a time; one that cannot be run counts as failed. */
export async function runTenants(run: TenantsRun): Promise<readonly Row[]> {
  const { scenarios, plan, limits, parallel, signal, onRow } = run;
  const rows: Row[] = [];
  for (let first = 0; first < scenarios.length && !signal.aborted; first += parallel) {
    const made = await Promise.all(
      scenarios.slice(first, first + parallel).map((scenario) =>
        runScenario(scenario, plan, signal).then(
          (seen): Row => judgeTenants(seen, limits),
          (error: unknown) => brokenRow(scenario.name, tenantColumns, error),
        ),
      ),
    );
    made.forEach(onRow);
    rows.push(...made);
  }
  return rows;
}
