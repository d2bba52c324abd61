import { test } from "bun:test";

/** True when every test must run, even without the programs it needs (`npm run test:all`). */
export const isComplete = process.env["SLUICE_TEST_ALL"] === "1";

/**
 * `test` when the program is installed; else a test that is skipped with one line of explanation
 * or, in a complete run, fails.
 */
export function testNeeding(program: string): typeof test {
  if (isComplete || Bun.which(program) !== null) return test;
  process.stdout.write(`skipped: ${program} is not installed\n`);
  return test.skip;
}
