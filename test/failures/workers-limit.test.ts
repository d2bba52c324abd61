import { readFileSync } from "node:fs";
import { expect, test } from "bun:test";
import { until } from "../support/ledger-truth-process.ts";
import { createKeyOf } from "../support/process-key.ts";
import { startServing, type ServingProcess } from "../support/sluice-process.ts";
import { callWith, makeProcessFolder, statusOf } from "./outage-process.ts";

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

interface EndedCall {
  readonly startedAt: number;
  readonly endedAt: number;
  readonly status: number;
}

test("a limit holds, and calls are served, while control is killed and comes back", async () => {
  await using folder = makeProcessFolder({ workers, settings });
  const limits = { requestsPerMinute: limit, tokensPerMinute: 10_000_000 };
  const key = await createKeyOf(folder.configPath, { plan: "enterprise", limits });
  await using serving = await startServing(["--config", folder.configPath]);
  await untilListening(serving);
  const ended: EndedCall[] = [];
  const callMany = async (count: number): Promise<void> => {
    const call = async (): Promise<void> => {
      const startedAt = performance.now();
      const status = await callWith(serving, key);
      ended.push({ startedAt, endedAt: performance.now(), status });
    };
    await Promise.all(Array.from({ length: count }, call));
  };
  await callMany(limit / 4);
  const { controlPid } = serving;
  const underWay = callMany(limit / 10);
  process.kill(controlPid, "SIGKILL");
  await underWay;
  await callMany(limit / 10);
  // A third of what is left is the most that one of them may grant.
  expect(ended.map(({ status }) => status)).not.toContain(429);
  await until("another control process answers", async () => {
    const isBack = serving.controlPid !== controlPid && serving.controlPid !== serving.pid;
    return isBack && (await statusOf(`${serving.adminUrl}/readyz`).catch(() => 0)) === 200;
  });
  await callMany(2 * limit);
  // A worker repeats a refusal for up to a second, even if another one has given something back.
  const granted = (): number => ended.filter(({ status }) => status === 200).length;
  for (let wave = 0; wave < 5 && granted() <= limit * 0.8; wave += 1) {
    await Bun.sleep(1_100);
    await callMany(limit);
  }
  const most = Math.max(
    ...ended.map(({ startedAt }) => {
      const isInMinute = (one: EndedCall): boolean =>
        one.startedAt >= startedAt && one.endedAt <= startedAt + 60_000;
      return ended.filter((one) => one.status === 200 && isInMinute(one)).length;
    }),
  );
  expect(most).toBeLessThanOrEqual(limit);
  expect(most).toBeGreaterThan(limit * 0.8);
  expect(new Set(ended.map(({ status }) => status))).toEqual(new Set([200, 429]));
}, 90_000);

/** All workers listen at one port, each with a socket of its own. */
async function untilListening({ dataUrl }: ServingProcess): Promise<void> {
  const port = Number(new URL(dataUrl).port).toString(16).toUpperCase().padStart(4, "0");
  const listener = new RegExp(`:${port} 00000000:0000 0A `, "g");
  while ([...readFileSync("/proc/net/tcp", "utf8").matchAll(listener)].length < workers) {
    await Bun.sleep(20);
  }
}
