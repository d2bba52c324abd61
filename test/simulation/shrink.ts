import type { Scenario } from "./scenario.ts";
import { simulate, type RunResult } from "./simulate.ts";

export interface Shrunk {
  readonly scenario: Scenario;
  readonly result: RunResult;
  readonly runs: number;
}

/** Enough for a result of one page in acceptable time. */
const mostRuns = 400;

/**
 * Leaves out calls and events, halves first, as long as the same rule is broken. The rest is run
 * once more with its trace.
 */
export function shrink(scenario: Scenario, rule: string): Shrunk {
  let runs = 0;
  const isBroken = (candidate: Scenario): boolean => {
    runs += 1;
    return simulate(candidate).violations.some((violation) => violation.rule === rule);
  };
  const hasRunsLeft = (): boolean => runs < mostRuns;
  let smallest = scenario;
  for (const part of ["events", "calls", "events"] as const) {
    smallest = leaveOut(smallest, part, { isBroken, hasRunsLeft });
  }
  return { scenario: smallest, result: simulate(smallest, true), runs };
}

interface Judge {
  readonly isBroken: (candidate: Scenario) => boolean;
  readonly hasRunsLeft: () => boolean;
}

function leaveOut(scenario: Scenario, part: "events" | "calls", judge: Judge): Scenario {
  let smallest = scenario;
  for (let size = Math.ceil(scenario[part].length / 2); size >= 1; size = halfOf(size)) {
    for (let start = 0; start < smallest[part].length && judge.hasRunsLeft();) {
      const candidate = without(smallest, part, { start, size });
      if (judge.isBroken(candidate)) smallest = candidate;
      else start += size;
    }
  }
  return smallest;
}

/** 0 after 1, which ends the search. */
function halfOf(size: number): number {
  return size === 1 ? 0 : Math.ceil(size / 2);
}

function without(
  scenario: Scenario,
  part: "events" | "calls",
  { start, size }: { start: number; size: number },
): Scenario {
  if (part === "calls") return { ...scenario, calls: scenario.calls.toSpliced(start, size) };
  return { ...scenario, events: scenario.events.toSpliced(start, size) };
}
