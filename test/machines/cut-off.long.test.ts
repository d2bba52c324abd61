import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect } from "bun:test";
import { startChild } from "../../bench/stand/child.ts";
import { changedKeySchema } from "../../src/control/contract/keys.ts";
import { processesSchema } from "../../src/control/contract/processes.ts";
import { isComplete, testWhere } from "../support/requirement.ts";
import { report } from "../support/scorecard.ts";
import { sluiceProgram } from "../support/sluice-process.ts";
import { startDistantLoad } from "./faults/distant-load.ts";
import { FaultRun } from "./faults/fault-run.ts";
import { canMakeNamespaces, NetworkNamespace } from "./faults/network-namespace.ts";
import { createTenant, untilWhole } from "./faults/tenants.ts";
import { askAdmin } from "./stack-admin.ts";
import { canRunMachines, MachineStack, type Machine } from "./machine-stack.ts";
import { untilStored } from "./stack-ledger.ts";
import { mostAdmitted, type StackCall } from "./stack-load.ts";

const cutMs = isComplete ? 60_000 : 5_000;
const limit = 60;
/** Each gateway has two. */
const processes = 6;
/** Two processes of six. */
const shareOfGateway = limit / 3;

const test = testWhere(
  canRunMachines && canMakeNamespaces(),
  "the servers are not installed, or network namespaces cannot be made here",
);

let made: NetworkNamespace | undefined;
// Also after a test that took too long.
afterAll(() => made?.[Symbol.dispose]());

test("a gateway that is cut off serves the keys it knows, loses no call, and is named in receipts", async () => {
  const namespace = (made = new NetworkNamespace());
  await using upstream = await startUpstream(namespace);
  await using stack = await MachineStack.create({
    machines: 2,
    timeout: "50ms",
    address: namespace.outside,
  });
  const { outside, inside, prefix } = namespace;
  const place = { address: inside, prefix, serversAt: outside, upstreamUrl: upstream.url };
  const distant = await stack.join(place);
  const others = stack.machines.slice(0, 2);
  const [first] = others;
  if (first === undefined) throw new Error("there is no gateway");

  const run = await FaultRun.start(stack, [
    { name: "outside", requestsPerMinute: 1_000_000, perSecond: 40, statuses: [200] },
    { name: "outside, small", requestsPerMinute: limit, perSecond: 10 },
  ]);
  const known = await createTenant(stack, { name: "inside", requestsPerMinute: 1_000_000 });
  const small = await createTenant(stack, { name: "inside, small", requestsPerMinute: limit });
  const leaked = await createTenant(stack, { name: "leaked", requestsPerMinute: 1_000_000 });
  const call = (key: string, perSecond: number) =>
    startDistantLoad({ prefix, url: distant.process.dataUrl, key, perSecond });
  const ofKnown = call(known.key, 20);
  await Bun.sleep(2_000);

  run.fault();
  namespace.cut();
  const ofSmall = call(small.key, 20);
  const ofLeaked = call(leaked.key, 5);
  const receipt = await revoke(first, leaked.keyId);
  expect(receipt?.processes).toBeLessThanOrEqual(4);
  expect((receipt?.of ?? 0) + (receipt?.silent ?? 0)).toBe(processes);
  let later = receipt;
  while (later?.silent !== 2 || later.processes !== 4) later = await revoke(first, leaked.keyId);
  expect(later.of).toBe(4);
  const { data } = processesSchema.parse(await askAdmin(first, "GET", "/processes"));
  expect(data.filter(({ live }) => !live)).toHaveLength(2);
  await Bun.sleep(cutMs);
  const [callsOfSmall, callsOfLeaked] = await Promise.all([ofSmall(), ofLeaked()]);

  namespace.heal();
  run.healed();
  while ((await statusOf(distant, leaked.key)) !== 401) await Bun.sleep(20);
  await untilWhole({ machines: others });
  while (await isDegraded(namespace, distant)) await Bun.sleep(20);
  run.recovered();
  let applied = await revoke(first, small.keyId);
  while (applied?.processes !== processes) applied = await revoke(first, small.keyId);
  expect(applied).toEqual({ processes, of: processes, silent: 0 });
  await Bun.sleep(1_000);

  const callsOfKnown = await ofKnown();
  await run.end();
  for (const line of run.figures("cut off", { recoveryMs: 95_000 })) report(line);
  expect(statusesOf(callsOfKnown)).toEqual([200]);
  expect(statusesOf(callsOfLeaked)).toEqual([200]);
  expect(callsOfSmall.filter(({ status }) => status !== 200 && status !== 429)).toEqual([]);
  expect(mostAdmitted(callsOfSmall)).toBeLessThanOrEqual(shareOfGateway);
  const all = [...callsOfKnown, ...callsOfSmall, ...callsOfLeaked];
  expect(await untilStored(stack.storageUrl, all)).toEqual({ lost: 0, doubled: 0, miscounted: 0 });
}, 300_000);

async function startUpstream({ prefix, inside }: NetworkNamespace) {
  const folder = mkdtempSync(join(tmpdir(), "sluice-inside-"));
  const command = [...prefix, ...sluiceProgram, "simulator", "--listen", "0.0.0.0:9090"];
  const child = startChild({ command, logPath: join(folder, "simulator.log") });
  while (!(await answers(`http://${inside}:9090/v1/models`))) await Bun.sleep(50);
  return {
    url: "http://127.0.0.1:9090/v1",
    async [Symbol.asyncDispose](): Promise<void> {
      await child[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function answers(url: string): Promise<boolean> {
  try {
    await (await fetch(url)).text();
    return true;
  } catch {
    return false;
  }
}

async function revoke(machine: Machine, keyId: string) {
  return changedKeySchema.parse(await askAdmin(machine, "DELETE", `/keys/${keyId}`)).applied;
}

async function statusOf({ process }: Machine, key: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}` };
  const response = await fetch(`${process.dataUrl}/v1/models`, { headers });
  await response.text();
  return response.status;
}

async function isDegraded(namespace: NetworkNamespace, { process }: Machine): Promise<boolean> {
  const page = await namespace.read(`${process.adminUrl}/metrics`);
  return (
    !/^sluice_limits_degraded\S* 0$/m.test(page) || /^sluice_limits_degraded\S* 1$/m.test(page)
  );
}

function statusesOf(calls: readonly StackCall[]): readonly number[] {
  return [...new Set(calls.map(({ status }) => status))].toSorted((one, other) => one - other);
}
