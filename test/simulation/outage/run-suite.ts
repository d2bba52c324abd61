import { gridLimits } from "../../outage/grid/verdict.ts";
import { brokenRow, type Row } from "../../outage/report/table.ts";
import type { Scenario } from "../scenario.ts";
import type { RunResult } from "../simulate.ts";
import { placeScenario, type CellTimes } from "./cell-scenario.ts";
import { allSimulatedCells, type SimulatedCell } from "./cells.ts";
import { cellColumns, judgeSimulatedCell } from "./judge-cell.ts";
import { judgeSimulatedTenants, tenantColumns } from "./judge-tenants.ts";
import { allSimulatedTenants, placeTenants, type SimulatedTenants } from "./tenant-scenario.ts";

/** One row of the table. */
export interface Outage {
  readonly name: string;
  readonly columns: readonly string[];
  /** Runs and judges its scenarios; never rejects. */
  judge(how: OutageRunner): Promise<Row>;
}

export interface OutageRunner extends Pick<CellTimes, "faultSeconds" | "flappingSeconds"> {
  /** Runs a scenario to its end. */
  readonly run: (scenario: Scenario) => Promise<RunResult> | RunResult;
}

const tenantCount = 20;
const perSecond = 50;
/** As in the suite over sockets. */
export const outageTimes = { perSecond, warmSeconds: 5, afterSeconds: 12 };
export const tenantTimes = {
  perSecondOfEach: perSecond / tenantCount,
  warmSeconds: 5,
  afterSeconds: 5,
};

/** Rows for failing targets, then for tenants of which one causes faults. */
export function allOutages(): readonly Outage[] {
  return [...allSimulatedCells().map(outageOfCell), ...allSimulatedTenants().map(outageOfTenants)];
}

function outageOfCell(simulated: SimulatedCell): Outage {
  const { name } = simulated;
  return outage({ name, columns: cellColumns }, async ({ run, ...lengths }) => {
    const placed = placeScenario(simulated, { ...outageTimes, ...lengths });
    const result = await run(placed.scenario);
    return judgeSimulatedCell(simulated, placed, { result, limits: gridLimits });
  });
}

function outageOfTenants(simulated: SimulatedTenants): Outage {
  const { name } = simulated;
  return outage({ name, columns: tenantColumns }, async ({ faultSeconds, run }) => {
    const { without, beside, faultsAt } = placeTenants(simulated, {
      ...tenantTimes,
      faultSeconds,
    });
    const results = { without: await run(without), beside: await run(beside), faultsAt };
    return judgeSimulatedTenants(simulated, results);
  });
}

function outage(
  { name, columns }: Pick<Outage, "name" | "columns">,
  judge: Outage["judge"],
): Outage {
  return {
    name,
    columns,
    judge: (how) => judge(how).catch((error: unknown) => brokenRow(name, columns, error)),
  };
}
