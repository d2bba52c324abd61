import { afterAll } from "bun:test";
import { isComplete } from "../support/requirement.ts";
import { report } from "../support/scorecard.ts";
import type { FaultRun } from "./faults/fault-run.ts";
import { runValkeyFault, valkeyStack } from "./faults/valkey-run.ts";
import { MachineStack, testWithMachines } from "./machine-stack.ts";

const steps = isComplete ? 40 : 10;

let stack: MachineStack | undefined;
afterAll(() => stack?.[Symbol.asyncDispose]());

/** Takes a step of a fault again and again, after each of which calls go elsewhere. */
async function repeat(
  name: string,
  step: (stack: MachineStack, run: FaultRun) => Promise<void>,
): Promise<void> {
  stack ??= await MachineStack.create(valkeyStack);
  const lines = await runValkeyFault(stack, {
    name,
    durationMs: 0,
    async begin(on, run) {
      for (let count = 0; count < steps; count += 1) {
        await step(on, run);
        run.move();
      }
      return () => undefined;
    },
  });
  for (const line of lines) report(line);
}

testWithMachines(
  "a server that is killed and started every few hundred milliseconds grants no key twice its limit",
  () =>
    repeat("flapping", async ({ valkey }) => {
      await valkey.kill();
      await Bun.sleep(200);
      await valkey.start();
      await Bun.sleep(300);
    }),
  300_000,
);

testWithMachines(
  "a server that pauses ten times a second loses no call and grants no key twice its limit",
  () =>
    repeat("pausing", async ({ valkey }) => {
      for (let count = 0; count < 3; count += 1) {
        valkey.signal("SIGSTOP");
        await Bun.sleep(100);
        valkey.signal("SIGCONT");
        await Bun.sleep(100);
      }
    }),
  300_000,
);

testWithMachines(
  "a server that loses its data again and again grants no key twice its limit",
  () =>
    repeat("emptied", async ({ valkey }) => {
      await valkey.command("FLUSHALL");
      await Bun.sleep(700);
    }),
  300_000,
);
