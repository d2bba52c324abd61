import { expect } from "bun:test";
import { isComplete } from "../../support/requirement.ts";
import type { ScorecardLine } from "../../support/scorecard.ts";
import { untilStored } from "../stack-ledger.ts";
import type { MachineStack } from "../machine-stack.ts";
import { ControlTraffic } from "./control-traffic.ts";
import { FaultRun, type TenantLoad } from "./fault-run.ts";
import { untilWhole } from "./tenants.ts";

const aroundMs = isComplete ? 10_000 : 1_500;

function tenantsOf(fault: string): readonly TenantLoad[] {
  return [
    { name: `${fault} large`, requestsPerMinute: 1_000_000, perSecond: 40, statuses: [200] },
    { name: `${fault} other`, requestsPerMinute: 1_000_000, perSecond: 20, statuses: [200] },
    { name: `${fault} small`, requestsPerMinute: 60, perSecond: 10 },
  ];
}

export interface DatabaseFault {
  readonly name: string;
  readonly durationMs: number;
  /** Begins the fault; returns how to end it. */
  readonly begin: (stack: MachineStack) => Promise<() => unknown>;
}

/**
 * A fault of PostgreSQL under load: every call of a known key is served, changes and unknown keys
 * get 503 at worst, and afterwards all calls are stored once. Returns the times.
 */
export async function runDatabaseFault(
  stack: MachineStack,
  { name, durationMs, begin }: DatabaseFault,
): Promise<readonly ScorecardLine[]> {
  const run = await FaultRun.start(stack, tenantsOf(name));
  const traffic = new ControlTraffic(stack.machines);
  await Bun.sleep(aroundMs);
  run.fault();
  const heal = await begin(stack);
  await Bun.sleep(durationMs);
  await heal();
  run.healed();
  await untilWhole(stack);
  await untilStored(stack.storageUrl, run.calls);
  run.recovered();
  await Bun.sleep(aroundMs);
  const { changes, unknown } = await traffic.stop();
  await run.end();
  expect({ changes, unknown }).toEqual({
    changes: changes.includes("503") ? ["201", "503"] : ["201"],
    unknown: unknown.includes("503") ? ["401", "503"] : ["401"],
  });
  return run.figures(`PostgreSQL ${name}`, { recoveryMs: 30_000 });
}
