import { readFileSync } from "node:fs";
import { expect, test } from "bun:test";
import { createKeyOf } from "../support/process-key.ts";
import { startServing, type ServingProcess } from "../support/sluice-process.ts";
import { callWith, makeProcessFolder } from "./outage-process.ts";

const limit = 1_000;
const calls = 4_000;
const workers = 3;
/** All calls come at once, and none may be refused because the machine is slow. */
const settings = "overload: { loop_delay: 10s }";

test("three workers grant a limit once, whichever of them is asked", async () => {
  await using folder = makeProcessFolder({ workers, settings });
  const limits = { requestsPerMinute: limit, tokensPerMinute: 10_000_000 };
  const key = await createKeyOf(folder.configPath, { plan: "enterprise", limits });
  await using serving = await startServing(["--config", folder.configPath]);
  await untilListening(serving);
  const statuses = await Promise.all(Array.from({ length: calls }, () => callWith(serving, key)));
  const countOf = (status: number) => statuses.filter((one) => one === status).length;
  expect([countOf(200), countOf(429)]).toEqual([limit, calls - limit]);
}, 60_000);

/** All workers listen at one port, each with a socket of its own. */
async function untilListening({ dataUrl }: ServingProcess): Promise<void> {
  const port = Number(new URL(dataUrl).port).toString(16).toUpperCase().padStart(4, "0");
  const listener = new RegExp(`:${port} 00000000:0000 0A `, "g");
  while ([...readFileSync("/proc/net/tcp", "utf8").matchAll(listener)].length < workers) {
    await Bun.sleep(20);
  }
}
