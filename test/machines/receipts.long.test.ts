import { afterAll, beforeAll, expect } from "bun:test";
import { z } from "zod";
import { receiptFields } from "../../src/control/contract/processes.ts";
import { childrenOf } from "../support/sluice-process.ts";
import { canRunMachines, MachineStack, testWithMachines } from "./machine-stack.ts";

const gateways = 3;
const timeoutMs = 120_000;
const issuedSchema = z.object({ key: z.object({ id: z.string() }), api_key: z.string() });
const receiptSchema = z.object(receiptFields);
const allHave = `${gateways} of ${gateways} processes have applied it.\n`;

let made: MachineStack | undefined;
beforeAll(async () => {
  if (!canRunMachines) return;
  made = await MachineStack.create({ machines: gateways, processes: 1 });
  await made.sluice("accounts", "create", "shop");
  const place = ["--account", "shop", "--environment", "production"];
  await made.sluice("applications", "create", "search", ...place);
}, timeoutMs);
afterAll(() => made?.[Symbol.asyncDispose](), timeoutMs);

function started(): MachineStack {
  if (made === undefined) throw new Error("the gateways are not started");
  return made;
}

async function issue(): Promise<z.infer<typeof issuedSchema>> {
  const limits = ["--requests-per-minute", "1000", "--tokens-per-minute", "1000000"];
  const wanted = ["--application", "search", "--plan", "enterprise", ...limits, "--json"];
  return issuedSchema.parse(JSON.parse(await started().sluice("keys", "create", ...wanted)));
}

async function keys(...command: readonly string[]): Promise<string> {
  const { exitCode, errors } = await started().sluiceAt(0, "keys", ...command);
  expect(exitCode).toBe(0);
  return errors;
}

/** Repeats a command until it says so: a busy machine may take longer than a receipt waits. */
async function untilTold(text: string, ...command: readonly string[]): Promise<string> {
  for (;;) {
    const told = await keys(...command);
    if (told.includes(text)) return told;
    expect(told).toContain("Warning: ");
  }
}

async function statusOf(index: number, key: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}` };
  return (await fetch(`${started().machine(index).process.dataUrl}/v1/models`, { headers })).status;
}

testWithMachines(
  "commands that stop a key print how many processes have applied it",
  async () => {
    const { key, api_key: secret } = await issue();
    await untilTold(allHave, "disable", key.id);
    await untilTold(allHave, "enable", key.id);
    for (;;) {
      if ((await keys("rotate", key.id, "--compromised")).includes(allHave)) break;
    }
    expect(await statusOf(1, secret)).toBe(401);
    const told = await untilTold(allHave, "revoke", key.id);
    expect(told).not.toContain("Warning");
    const json = await started().sluice("keys", "revoke", key.id, "--json");
    expect(receiptSchema.parse(JSON.parse(json)).applied?.of).toBe(gateways);
  },
  timeoutMs,
);

testWithMachines(
  "a command names a process that has not applied the revocation, at first late, then silent",
  async () => {
    const { process: last } = started().machine(gateways - 1);
    const frozen = [last.pid, ...childrenOf(last.pid)];
    const { key, api_key: secret } = await issue();
    await untilTold(allHave, "enable", key.id);
    for (const pid of frozen) process.kill(pid, "SIGSTOP");
    const late = await keys("revoke", key.id);
    expect(late).not.toContain(allHave);
    expect(late).toContain("Warning: not applied by 1 process: ");
    const silent = await untilTold("2 of 2 processes have applied it.", "revoke", key.id);
    const name = last.adminUrl.replaceAll(".", "\\.");
    expect(silent).toMatch(new RegExp(`not applied by 1 process: .*${name}\\), silent for 1\\d s`));
    expect(silent).toContain("refuse it in the proxy");
    for (const pid of frozen) process.kill(pid, "SIGCONT");
    await untilTold(allHave, "revoke", key.id);
    expect(await statusOf(gateways - 1, secret)).toBe(401);
  },
  timeoutMs,
);
