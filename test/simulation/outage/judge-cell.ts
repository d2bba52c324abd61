import {
  failureNotes,
  isFailed,
  judgeAttempts,
  judgeLatency,
  judgeServed,
  judgeShare,
  startedWithin,
  type Limits,
} from "../../outage/grid/verdict.ts";
import type { Call } from "../../outage/load/load-plan.ts";
import type { Finding, Row } from "../../outage/report/table.ts";
import type { RunResult } from "../simulate.ts";
import type { PlacedScenario } from "./cell-scenario.ts";
import { stallsInStream, type SimulatedCell } from "./cells.ts";
import { judgeRules, ruleNotes, seenCalls } from "./seen-calls.ts";
import { isWithin, secondsIn, withoutSpans } from "./spans.ts";

/** `at first`: calls of the spans in which callers may notice the fault. */
export const cellColumns = [
  "at first",
  "served",
  "added p99",
  "attempts",
  "share",
  "return",
  "rules",
] as const;

/** Longer than the detection of a silent target, and shorter than any default timeout. */
const mostWaitMs = 2_000;

/** The verdicts of the grid over sockets, with exact latencies of the simulated clock. */
export function judgeSimulatedCell(
  { cell, name }: SimulatedCell,
  { primary, broken, noticed }: PlacedScenario,
  { result, limits }: { readonly result: RunResult; readonly limits: Limits },
): Row {
  const brokenAt = Math.min(...broken.map(({ fromMs }) => fromMs));
  const repairedAt = Math.max(...broken.map(({ untilMs }) => untilMs));
  const judged = withoutSpans(broken, noticed);
  const calls = seenCalls(result.calls);
  const before = startedWithin(calls, 0, brokenAt);
  const all = startedWithin(calls, brokenAt, repairedAt);
  const atFirst = all.filter(({ startedAt }) => isWithin(noticed, startedAt));
  const during = all.filter(({ startedAt }) => !isWithin(noticed, startedAt));
  const failing = during.filter(({ startedAt }) => isWithin(judged, startedAt));
  const after = startedWithin(calls, repairedAt, Infinity);
  const inVain = result.attempts.filter(({ upstream, fault, startedAt }) => {
    return upstream === primary && fault !== undefined && isWithin(judged, startedAt);
  });
  const findings = {
    "at first": judgeFirst(atFirst, stallsInStream(cell)),
    served: judgeServed(during, limits),
    "added p99": judgeLatency({ before, during: failing }, limits),
    attempts: judgeAttempts({ count: inVain.length, seconds: secondsIn(judged) }, limits),
    share: judgeShare({ left: cell.left, primary, repairedAt, after }, limits),
    return: judgeServed(after, limits),
    rules: judgeRules(result.violations),
  };
  const notes = failureNotes([
    ["at first", atFirst],
    ["during the fault", during],
    ["after it", after],
  ]);
  return { name, findings, notes: [...notes, ...ruleNotes(result.violations)] };
}

/**
 * The number of first callers without an answer, and the longest wait of the others. Only answers
 * that began before the fault are lost; the rest is served elsewhere, long before the timeouts.
 */
function judgeFirst(calls: readonly Call[], mayLose: boolean): Finding {
  const failed = calls.filter(isFailed).length;
  const waits = calls.filter((call) => !isFailed(call)).map(({ latencyMs }) => latencyMs);
  const longestMs = Math.max(0, ...waits);
  return {
    isMet: mayLose || (failed === 0 && longestMs <= mostWaitMs),
    text: `${failed} of ${calls.length} lost, ${longestMs.toFixed(0)} ms`,
  };
}
