import { isComplete } from "../../support/requirement.ts";
import type { ScorecardLine } from "../../support/scorecard.ts";
import type { MachineStack } from "../machine-stack.ts";
import { FaultRun, type TenantLoad } from "./fault-run.ts";
import { untilDecidedByServer, untilWhole } from "./tenants.ts";

const aroundMs = isComplete ? 10_000 : 1_500;

/** Settings of a stack on which `runValkeyFault` runs. */
export const valkeyStack = {
  timeout: "50ms",
  settings: "plans: { strict: { custom: true, when_limits_unavailable: closed } }",
};

function tenantsOf(fault: string): readonly TenantLoad[] {
  return [
    { name: `${fault}, large`, requestsPerMinute: 1_000_000, perSecond: 40, statuses: [200] },
    { name: `${fault}, small`, requestsPerMinute: 60, perSecond: 20 },
    // All of its calls come to one gateway, and to another one with each step of the fault.
    { name: `${fault}, moving`, requestsPerMinute: 60, perSecond: 20, gateways: [0, 1, 2] },
    {
      name: `${fault}, strict`,
      requestsPerMinute: 1_000_000,
      perSecond: 5,
      plan: "strict",
      statuses: [200, 503],
    },
  ];
}

export interface ValkeyFault {
  readonly name: string;
  readonly durationMs: number;
  /** Begins the fault; returns how to end it. */
  readonly begin: (stack: MachineStack, run: FaultRun) => Promise<() => unknown>;
}

/**
 * A fault of Valkey under load: every call of a known key is decided, no key gets twice its limit,
 * all calls are stored, and later Valkey decides again. Returns the times.
 */
export async function runValkeyFault(
  stack: MachineStack,
  { name, durationMs, begin }: ValkeyFault,
): Promise<readonly ScorecardLine[]> {
  const run = await FaultRun.start(stack, tenantsOf(name));
  await Bun.sleep(aroundMs);
  run.fault();
  const heal = await begin(stack, run);
  await Bun.sleep(durationMs);
  await heal();
  run.healed();
  await untilWhole(stack);
  run.recovered();
  await untilDecidedByServer(stack);
  await Bun.sleep(aroundMs);
  await run.end();
  return run.figures(`Valkey ${name}`, { recoveryMs: 65_000 });
}
