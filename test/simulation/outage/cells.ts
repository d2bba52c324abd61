import type { Fault as OutageFault } from "../../outage/doubles/faults.ts";
import { allCells, type Cell } from "../../outage/grid/cells.ts";
import { gridTimeouts } from "../../outage/grid/cell-models.ts";

/** Timeouts of the upstreams, as in a configuration. */
export const timeLimits = { short: gridTimeouts, default: "{}" } as const;
export type TimeLimits = keyof typeof timeLimits;

export const callerCounts = { "one-key": 1, "twenty-keys": 20 } as const;
export type Callers = keyof typeof callerCounts;

/**
 * `lasting`: the target fails all the time; `flapping`: it alternates between failing and working;
 * `restart`: it fails all the time, and in the middle the gateway's process is replaced;
 * `slow-answers`: it fails all the time, and all answers, including failures, are slow, so that
 * many calls run concurrently.
 */
export const courses = ["lasting", "flapping", "restart", "slow-answers"] as const;
export type Course = (typeof courses)[number];

/** A cell of the grid of `test/outage`, with more variations than real time allows. */
export interface SimulatedCell {
  /** Its parts with slashes between them. */
  readonly name: string;
  readonly cell: Cell;
  readonly callers: Callers;
  readonly limits: TimeLimits;
  readonly course: Course;
}

/** All cells, except those that equal others or cannot be fulfilled. */
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
 * The simulation has no Bedrock embeddings. A silent target cannot be detected within a second if
 * answers are slow.
 */
function isSimulated({ fault, wire, kind, left }: Cell, course: Course): boolean {
  if (wire === "bedrock" && kind === "embeddings") return false;
  if (course === "lasting") return true;
  if (course === "slow-answers" && silentFaults.has(fault)) return false;
  return wire === "openai" && left === "second" && kind !== "embeddings";
}

const silentFaults: ReadonlySet<OutageFault> = new Set(["black-hole", "slow-headers", "stall"]);

/**
 * An immediate fault is the same under all timeouts. A fault that only the idle timeout detects
 * ends before the default one if the target works again after three seconds.
 */
function limitsFor(cell: Cell, course: Course): readonly TimeLimits[] {
  if (!silentFaults.has(cell.fault)) return ["default"];
  return course === "flapping" && stallsInStream(cell) ? ["short"] : ["short", "default"];
}

/** The stream has begun for its caller when it stalls, and only the idle timeout detects it. */
export function stallsInStream({ fault, kind }: Pick<Cell, "fault" | "kind">): boolean {
  return fault === "stall" && kind === "stream";
}

/** Whether only the default idle timeout detects the fault: it is judged from then on. */
export function isHidden({ cell, limits }: Pick<SimulatedCell, "cell" | "limits">): boolean {
  return stallsInStream(cell) && limits === "default";
}
