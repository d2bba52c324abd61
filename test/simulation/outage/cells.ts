import type { Fault as OutageFault } from "../../outage/doubles/faults.ts";
import { allCells, type Cell } from "../../outage/grid/cells.ts";
import { gridTimeouts } from "../../outage/grid/cell-models.ts";

/** Time limits of the upstreams, as a configuration has them. */
export const timeLimits = { short: gridTimeouts, default: "{}" } as const;
export type TimeLimits = keyof typeof timeLimits;

export const callerCounts = { "one-key": 1, "twenty-keys": 20 } as const;
export type Callers = keyof typeof callerCounts;

/**
 * `lasting`: the target fails from begin to end; `flapping`: it fails and works by turns; `restart`:
 * it fails from begin to end, and in the middle the gateway's process dies and the next one starts;
 * `slow-answers`: it fails from begin to end, and all answers, failures too, take their time, so that
 * many calls are under way at once.
 */
export const courses = ["lasting", "flapping", "restart", "slow-answers"] as const;
export type Course = (typeof courses)[number];

/** A cell of the grid of `test/outage`, with what only a clock of its own can afford to vary. */
export interface SimulatedCell {
  /** Its parts with slashes between them. */
  readonly name: string;
  readonly cell: Cell;
  readonly callers: Callers;
  readonly limits: TimeLimits;
  readonly course: Course;
}

/** All cells, but for those that cannot differ from others or cannot be met. */
export function allSimulatedCells(): readonly SimulatedCell[] {
  return courses.flatMap((course) =>
    allCells()
      .filter((cell) => isSimulated(cell, course))
      .flatMap((cell) =>
        limitsFor(cell, course).flatMap((limits) =>
          (["one-key", "twenty-keys"] as const).map((callers) => {
            const name = [cell.name, callers, limits, course].join("/");
            return { name, cell, callers, limits, course };
          }),
        ),
      ),
  );
}

/**
 * Bedrock's embeddings are not on the simulation's wires. A silent target cannot be found within a
 * second where answers take long.
 */
function isSimulated({ fault, wire, kind, left }: Cell, course: Course): boolean {
  if (wire === "bedrock" && kind === "embeddings") return false;
  if (course === "lasting") return true;
  if (course === "slow-answers" && silentFaults.has(fault)) return false;
  return wire === "openai" && left === "second" && kind !== "embeddings";
}

const silentFaults: ReadonlySet<OutageFault> = new Set(["black-hole", "slow-headers", "stall"]);

/**
 * A fault that shows at once is the same under all time limits. One that only the idle time tells is
 * over before the default one is, where the target works again after three seconds.
 */
function limitsFor(cell: Cell, course: Course): readonly TimeLimits[] {
  if (!silentFaults.has(cell.fault)) return ["default"];
  return course === "flapping" && stallsInStream(cell) ? ["short"] : ["short", "default"];
}

/** The stream has begun for its caller when it stalls, and nothing but the idle time tells. */
export function stallsInStream({ fault, kind }: Pick<Cell, "fault" | "kind">): boolean {
  return fault === "stall" && kind === "stream";
}

/** Whether the fault cannot be found before the default idle time is over: it is judged from then on. */
export function isHidden({ cell, limits }: Pick<SimulatedCell, "cell" | "limits">): boolean {
  return stallsInStream(cell) && limits === "default";
}
