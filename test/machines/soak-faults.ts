import { appendFileSync } from "node:fs";
import type { Random } from "../../simulator/answer/random.ts";
import type { FaultMode } from "../../simulator/simulator.ts";
import { processesOf } from "../support/sluice-process.ts";
import { beginStream } from "./mixed-calls.ts";
import type { MachineStack } from "./machine-stack.ts";

/** What a fault may touch. */
export interface SoakPlace {
  readonly stack: MachineStack;
  readonly random: Random;
  readonly key: string;
  /** Replaces the secret of the load. */
  readonly rotate: () => Promise<void>;
}

/** Resolves when the fault is over; what it broke may need time to recover. */
type SoakFault = (place: SoakPlace) => Promise<void>;

const upstreamFaults = [
  "error-500",
  "throttle-429",
  "overloaded-503",
  "reset",
  "cut-mid-chunk",
  "cut-before-headers",
  "bad-json",
] as const satisfies readonly FaultMode[];

export const soakFaults: Readonly<Record<string, SoakFault>> = {
  "a process is killed": async ({ stack, random }) => {
    const pid = random.pickAny(processesOf(pickMachine(stack, random).process.pid));
    if (pid !== undefined) process.kill(pid, "SIGKILL");
  },
  "a parent is killed": async ({ stack, random }) => {
    const index = random.integer(0, stack.machines.length - 1);
    // Kills it, and waits for those that end with it.
    await stack.machine(index).process[Symbol.asyncDispose]();
    await stack.start(index);
    await stack.balance();
  },
  "Redis is killed": async ({ stack, random }) => {
    await stack.valkey.kill();
    await lasting(random);
    await stack.valkey.start();
  },
  "Redis freezes": async ({ stack, random }) => {
    stack.valkey.signal("SIGSTOP");
    await lasting(random);
    stack.valkey.signal("SIGCONT");
  },
  "Redis loses its data": async ({ stack }) => {
    await stack.valkey.command("FLUSHALL");
  },
  "PostgreSQL is killed": async ({ stack, random }) => {
    await stack.postgres.kill();
    await lasting(random);
    await stack.postgres.start();
  },
  "PostgreSQL freezes": async ({ stack, random }) => {
    stack.postgres.signal("SIGSTOP");
    await lasting(random);
    stack.postgres.signal("SIGCONT");
  },
  "the upstream fails": async ({ stack, random }) => {
    const share = random.pick([0.2, 0.5, 1]);
    stack.simulator.setFaultPlan([{ mode: random.pick(upstreamFaults), times: Infinity, share }]);
    await lasting(random);
    stack.simulator.setFaultPlan([]);
  },
  "callers leave": async ({ stack, random, key }) => {
    for (let count = random.integer(5, 20); count > 0; count -= 1) {
      const leaving = new AbortController();
      const stream = await beginStream(stack.url, key, 200, leaving.signal);
      leaving.abort();
      await stream.rest.catch(() => undefined);
    }
  },
  "a key is rotated": ({ rotate }) => rotate(),
  "a configuration is reloaded": async ({ stack, random }) => {
    const { configPath, process } = pickMachine(stack, random);
    appendFileSync(configPath, `# ${random.next()}\n`);
    process.signal("SIGHUP");
  },
};

function pickMachine(stack: MachineStack, random: Random) {
  return stack.machine(random.integer(0, stack.machines.length - 1));
}

function lasting(random: Random): Promise<void> {
  return Bun.sleep(random.integer(200, 3_000));
}
