import { isFailed, startedWithin } from "../../outage/grid/verdict.ts";
import type { Call } from "../../outage/load/load-plan.ts";
import type { Finding, Row } from "../../outage/report/table.ts";
import {
  judgeLost,
  judgeRefused,
  latencyOf,
  tenantNotes,
} from "../../outage/tenants/judge-tenants.ts";
import type { Behaviour } from "../../outage/tenants/scenarios.ts";
import type { CallRecord } from "../records.ts";
import type { RunResult } from "../simulate.ts";
import { judgeRules, ruleNotes, seenCall, seenCalls } from "./seen-calls.ts";
import { faultyKey, type SimulatedTenants } from "./tenant-scenario.ts";

export const tenantColumns = [
  "served",
  "refused",
  "p50",
  "p99",
  "changed",
  "the one",
  "rules",
] as const;

export interface SeenTenants {
  readonly without: RunResult;
  readonly beside: RunResult;
  readonly faultsAt: number;
}

/** The promise: within 1 % of a run without the faults. A simulation has no noise. */
const mostAdded = 0.01;

/** The effect of one tenant's faults on the others, call by call. */
export function judgeSimulatedTenants(
  { name, scenario }: SimulatedTenants,
  seen: SeenTenants,
): Row {
  const { faultsAt } = seen;
  const callsOf = ({ calls }: RunResult, isWanted: (record: CallRecord) => boolean) =>
    startedWithin(seenCalls(calls.filter(isWanted)), faultsAt, Infinity);
  const isOther = ({ plan }: CallRecord): boolean => plan.key !== faultyKey;
  const without = callsOf(seen.without, isOther);
  const beside = callsOf(seen.beside, isOther);
  const causing = callsOf(seen.beside, (record) => !isOther(record));
  const violations = [...seen.without.violations, ...seen.beside.violations];
  const findings = {
    served: judgeLost(without, beside, { mostLost: 0 }),
    refused: judgeRefused(beside),
    p50: judgeAdded(without, beside, "p50"),
    p99: judgeAdded(without, beside, "p99"),
    changed: countChanged(seen),
    "the one": judgeCausing(causing, scenario.behaviour),
    rules: judgeRules(violations),
  };
  return {
    name,
    findings,
    notes: [...tenantNotes({ without, beside, causing }), ...ruleNotes(violations)],
  };
}

function judgeAdded(
  without: readonly Call[],
  beside: readonly Call[],
  which: "p50" | "p99",
): Finding {
  const [withoutMs, besideMs] = [latencyOf(without, which), latencyOf(beside, which)];
  const addedMs = besideMs - withoutMs;
  const text = `${addedMs < 0 ? "" : "+"}${addedMs.toFixed(1)} ms (to ${withoutMs.toFixed(1)})`;
  return { isMet: addedMs <= withoutMs * mostAdded, text };
}

/** Calls of the others with any difference: only the twentieth tenant can cause it. */
function countChanged({ without, beside }: SeenTenants): Finding {
  const known = new Map(beside.calls.map((record) => [record.plan.id, record]));
  const changed = without.calls.filter((record) => {
    const other = known.get(record.plan.id);
    return other === undefined || !Bun.deepEquals(seenCall(record), seenCall(other));
  });
  return { isMet: changed.length === 0, text: `${changed.length} of ${without.calls.length}` };
}

/** The tenant's own calls must fail; otherwise it has caused no fault. */
function judgeCausing(calls: readonly Call[], behaviour: Behaviour): Finding {
  const failed = calls.filter(isFailed).length;
  return {
    isMet: (failed === 0) === (behaviour === "none"),
    text: `${failed} of ${calls.length} not served`,
  };
}
