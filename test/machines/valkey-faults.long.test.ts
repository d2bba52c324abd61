import { afterAll } from "bun:test";
import { isComplete } from "../support/requirement.ts";
import { report } from "../support/scorecard.ts";
import { runValkeyFault, valkeyStack, type ValkeyFault } from "./faults/valkey-run.ts";
import { MachineStack, testWithMachines } from "./machine-stack.ts";

const durationMs = isComplete ? 30_000 : 5_000;

let stack: MachineStack | undefined;
afterAll(() => stack?.[Symbol.asyncDispose]());

/** One stack for all faults: each has keys of its own. */
async function run(fault: ValkeyFault): Promise<void> {
  stack ??= await MachineStack.create(valkeyStack);
  for (const line of await runValkeyFault(stack, fault)) report(line);
}

testWithMachines(
  "while Valkey is killed, known keys are served within their shares, and later by its decisions",
  () =>
    run({
      name: "killed",
      durationMs,
      async begin({ valkey }) {
        await valkey.kill();
        return () => valkey.start();
      },
    }),
  300_000,
);

testWithMachines(
  "while Valkey is frozen, known keys are served within their shares, and later by its decisions",
  () =>
    run({
      name: "frozen",
      durationMs,
      async begin({ valkey }) {
        valkey.signal("SIGSTOP");
        return () => valkey.signal("SIGCONT");
      },
    }),
  300_000,
);

testWithMachines(
  "a flush in the middle of a minute grants no key twice its limit",
  () =>
    run({
      name: "flushed",
      durationMs: 3_000,
      async begin({ valkey }) {
        await valkey.command("FLUSHALL");
        return () => undefined;
      },
    }),
  300_000,
);
