import type { CapacityClass } from "../../domain/usage/usage.ts";
import type { Call } from "../../snapshot/call.ts";

/** Minimum time that a provisioned call waits for a place. */
const leastQueueMs = 2_000;

/** Provisioned calls wait for a minimum time, until other calls have left their places. */
export function queueTimeoutMs(call: Call, capacityClass: CapacityClass): number {
  const ofPlan = call.snapshot.plans.get(call.caller.key.plan)?.queueTimeoutMs ?? 0;
  return capacityClass === "provisioned" ? Math.max(ofPlan, leastQueueMs) : ofPlan;
}
