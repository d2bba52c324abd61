import type { Call } from "../../outage/load/load-plan.ts";
import { countLine, type Finding } from "../../outage/report/table.ts";
import type { CallRecord, Violation } from "../records.ts";

/** Calls as seen by callers, except those that no process took or whose process ended. */
export function seenCalls(records: readonly CallRecord[]): readonly Call[] {
  return records.filter(hasResult).map(seenCall);
}

function hasResult({ process, crashedAt }: CallRecord): boolean {
  return process !== undefined && crashedAt === undefined;
}

export function seenCall(record: CallRecord): Call {
  const { plan, firstEventAt, endedAt, closed, isAnswered, error } = record;
  const answeredAt = firstEventAt ?? endedAt ?? Infinity;
  return {
    startedAt: plan.atMs,
    latencyMs: answeredAt - plan.atMs,
    servedBy: closed?.target?.split("/")[0] ?? "",
    failure: isAnswered ? "" : error === undefined ? "left" : `${error.status} ${error.code}`,
  };
}

/** Whether the simulation's own rules were kept. */
export function judgeRules(violations: readonly Violation[]): Finding {
  return { isMet: violations.length === 0, text: `${violations.length} broken` };
}

export function ruleNotes(violations: readonly Violation[]): readonly string[] {
  if (violations.length === 0) return [];
  const counts: Record<string, number> = {};
  for (const { rule } of violations) counts[rule] = (counts[rule] ?? 0) + 1;
  const [first] = violations;
  return [countLine("rules broken", counts), `the first: ${first?.call ?? "-"}: ${first?.text}`];
}
