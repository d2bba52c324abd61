import { test } from "bun:test";

const run = process.env["SLUICE_TEST_ALL"];

/** True when every test must run, even without what it needs (`npm run test:all`). */
export const isComplete = run === "1" || run === "measured";

/** Runs of a property: all of them in a complete run, a fifth in a quick one. */
export function runsOf(all: number): number {
  return isComplete ? all : Math.ceil(all / 5);
}

/** How much of something a test has. */
export interface Size {
  readonly quick: number;
  /** In a complete run. */
  readonly all: number;
  /** Where the figures of docs/reliability.md are measured (`npm run scorecard -- --all`). */
  readonly measured: number;
}

export function sizeOf({ quick, all, measured }: Size): number {
  if (run === "measured") return measured;
  return isComplete ? all : quick;
}

/**
 * `test` where the machine has what it needs; else a test that is skipped with one line of
 * explanation or, in a complete run, fails.
 */
export function testWhere(isThere: boolean, missing: string): typeof test {
  if (isComplete || isThere) return test;
  process.stdout.write(`skipped: ${missing}\n`);
  return test.skip;
}

/** A test that needs this program. */
export function testNeeding(program: string): typeof test {
  return testWhere(Bun.which(program) !== null, `${program} is not installed`);
}
