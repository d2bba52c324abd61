import { test } from "bun:test";

/** True when every test must run, even without what it needs (`npm run test:all`). */
export const isComplete = process.env["SLUICE_TEST_ALL"] === "1";

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
