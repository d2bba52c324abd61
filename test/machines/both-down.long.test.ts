import { afterAll, expect } from "bun:test";
import { isComplete } from "../support/requirement.ts";
import { report } from "../support/scorecard.ts";
import { FaultRun } from "./faults/fault-run.ts";
import { createTenant, untilDecidedByServer, untilWhole } from "./faults/tenants.ts";
import { MachineStack, testWithMachines } from "./machine-stack.ts";
import { untilStored } from "./stack-ledger.ts";
import { mostAdmitted, StackLoad } from "./stack-load.ts";

const faultMs = isComplete ? 60_000 : 6_000;
const limit = 60;

let stack: MachineStack | undefined;
afterAll(() => stack?.[Symbol.asyncDispose]());

async function runBoth(
  name: string,
  begin: (stack: MachineStack) => Promise<() => unknown>,
): Promise<void> {
  stack ??= await MachineStack.create({ timeout: "50ms" });
  const run = await FaultRun.start(stack, [
    { name: `${name}, large`, requestsPerMinute: 1_000_000, perSecond: 40, statuses: [200] },
    { name: `${name}, small`, requestsPerMinute: limit, perSecond: 10 },
  ]);
  const late = await createTenant(stack, { name: `${name}, late`, requestsPerMinute: limit });
  await Bun.sleep(1_500);
  run.fault();
  const heal = await begin(stack);
  const ofLate = new StackLoad({ url: stack.url, keys: [late.key], perSecond: 20 });
  await Bun.sleep(faultMs);
  const calls = await ofLate.stop();
  await heal();
  run.healed();
  await untilWhole(stack);
  await untilStored(stack.storageUrl, run.calls);
  run.recovered();
  await untilDecidedByServer(stack);
  await Bun.sleep(1_500);
  await run.end();
  for (const line of run.figures(`both ${name}`, { recoveryMs: 95_000 })) report(line);
  expect(calls.filter(({ status }) => status !== 200 && status !== 429)).toEqual([]);
  // The shares of all processes together are the limit.
  const admitted = mostAdmitted(calls);
  expect(admitted).toBeGreaterThan(0);
  expect(admitted).toBeLessThanOrEqual(limit);
  const ledger = await untilStored(stack.storageUrl, calls);
  expect(ledger).toEqual({ lost: 0, doubled: 0, miscounted: 0 });
}

testWithMachines(
  "without PostgreSQL and Valkey, known keys are served within the shares of the processes",
  () =>
    runBoth("killed", async ({ postgres, valkey }) => {
      await Promise.all([postgres.kill(), valkey.kill()]);
      return () => Promise.all([postgres.start(), valkey.start()]);
    }),
  300_000,
);

testWithMachines(
  "while PostgreSQL and Valkey are frozen, known keys are served within the shares of the processes",
  () =>
    runBoth("frozen", async ({ postgres, valkey }) => {
      for (const server of [postgres, valkey]) server.signal("SIGSTOP");
      return () => [postgres, valkey].forEach((server) => server.signal("SIGCONT"));
    }),
  300_000,
);
