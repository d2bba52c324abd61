import { expect, test } from "bun:test";
import { createKeyOf } from "../support/process-key.ts";
import { startServing } from "../support/sluice-process.ts";
import { callWith, makeProcessFolder } from "./outage-process.ts";

const limit = 1_000;
const calls = 4_000;

test("three workers grant a limit once, whichever of them is asked", async () => {
  await using folder = makeProcessFolder({ workers: 3 });
  const limits = { requestsPerMinute: limit, tokensPerMinute: 10_000_000 };
  const key = await createKeyOf(folder.configPath, { plan: "enterprise", limits });
  await using serving = await startServing(["--config", folder.configPath]);
  const statuses = await Promise.all(Array.from({ length: calls }, () => callWith(serving, key)));
  const countOf = (status: number) => statuses.filter((one) => one === status).length;
  expect([countOf(200), countOf(429)]).toEqual([limit, calls - limit]);
}, 60_000);
