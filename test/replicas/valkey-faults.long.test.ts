import { afterAll } from "bun:test";
import { isComplete } from "../support/requirement.ts";
import { report } from "../support/scorecard.ts";
import { FaultRun, type TenantLoad } from "./faults/fault-run.ts";
import { untilDecidedByServer, untilWhole } from "./faults/stack-admin.ts";
import { ReplicaStack, testWithReplicas } from "./replica-stack.ts";

const faultMs = isComplete ? 30_000 : 5_000;
const aroundMs = isComplete ? 10_000 : 2_000;
const strict = "plans: { strict: { custom: true, when_limits_unavailable: closed } }";

let stack: ReplicaStack | undefined;
afterAll(() => stack?.[Symbol.asyncDispose]());

/** One for all faults: each has keys of its own. */
async function sharedStack(): Promise<ReplicaStack> {
  return (stack ??= await ReplicaStack.create({ timeout: "50ms", settings: strict }));
}

function tenantsOf(fault: string): readonly TenantLoad[] {
  return [
    { name: `${fault} large`, requestsPerMinute: 1_000_000, perSecond: 40, statuses: [200] },
    { name: `${fault} small`, requestsPerMinute: 60, perSecond: 10 },
    // All of its calls come to one gateway, and to another one with each fault.
    { name: `${fault} moving`, requestsPerMinute: 60, perSecond: 10, gateways: [0, 1, 2] },
    {
      name: `${fault} strict`,
      requestsPerMinute: 1_000_000,
      perSecond: 5,
      plan: "strict",
      statuses: [200, 503],
    },
  ];
}

async function runFault(
  name: string,
  fault: (stack: ReplicaStack) => Promise<() => unknown>,
): Promise<void> {
  const on = await sharedStack();
  const run = await FaultRun.start(on, tenantsOf(name));
  await Bun.sleep(aroundMs);
  run.fault();
  const heal = await fault(on);
  await Bun.sleep(faultMs);
  await heal();
  run.healed();
  await untilWhole(on);
  run.recovered();
  await untilDecidedByServer(on);
  await Bun.sleep(aroundMs);
  try {
    await run.end();
  } finally {
    for (const line of run.figures(`Valkey ${name}`, { recoveryMs: 2_000 })) report(line);
  }
}

testWithReplicas(
  "while Valkey is killed, known keys are served within their shares, and later by its decisions",
  () =>
    runFault("killed", async ({ valkey }) => {
      await valkey.kill();
      return () => valkey.start();
    }),
  300_000,
);

testWithReplicas(
  "while Valkey is frozen, known keys are served within their shares, and later by its decisions",
  () =>
    runFault("frozen", async ({ valkey }) => {
      valkey.signal("SIGSTOP");
      return () => valkey.signal("SIGCONT");
    }),
  300_000,
);

testWithReplicas(
  "a flush in the middle of a minute grants no key more than twice its limit",
  () =>
    runFault("flushed", async ({ valkey }) => {
      await valkey.command("FLUSHALL");
      return () => undefined;
    }),
  300_000,
);
