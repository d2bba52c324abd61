import { afterAll } from "bun:test";
import { isComplete } from "../support/requirement.ts";
import { report } from "../support/scorecard.ts";
import { runDatabaseFault, type DatabaseFault } from "./faults/database-run.ts";
import { MachineStack, testWithMachines } from "./machine-stack.ts";

let stack: MachineStack | undefined;
afterAll(() => stack?.[Symbol.asyncDispose]());

/** One stack for all faults: each has keys of its own. */
async function run(fault: DatabaseFault): Promise<void> {
  stack ??= await MachineStack.create({ timeout: "50ms" });
  for (const line of await runDatabaseFault(stack, fault)) report(line);
}

testWithMachines(
  "while PostgreSQL is killed, known keys are served, and all calls are stored later",
  () =>
    run({
      name: "killed",
      durationMs: isComplete ? 120_000 : 5_000,
      async begin({ postgres }) {
        await postgres.kill();
        return () => postgres.start();
      },
    }),
  400_000,
);

testWithMachines(
  "while PostgreSQL is frozen, known keys are served, and all calls are stored later",
  () =>
    run({
      name: "frozen",
      durationMs: isComplete ? 30_000 : 5_000,
      async begin({ postgres }) {
        postgres.signal("SIGSTOP");
        return () => postgres.signal("SIGCONT");
      },
    }),
  300_000,
);

testWithMachines(
  "while PostgreSQL is restarted again and again, known keys are served, and all calls are stored",
  () =>
    run({
      name: "restarted",
      durationMs: isComplete ? 5_000 : 500,
      async begin({ postgres }) {
        for (let round = 0; round < 3; round += 1) {
          await postgres.kill();
          await postgres.start();
          await Bun.sleep(500);
        }
        return () => undefined;
      },
    }),
  300_000,
);
