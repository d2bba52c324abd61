import { afterAll, beforeAll, expect } from "bun:test";
import { sizeOf } from "../support/requirement.ts";
import { report } from "../support/scorecard.ts";
import { canRunMachines, testWithMachines } from "./machine-stack.ts";
import { RevocationBench } from "./revocation-bench.ts";

const gateways = 3;
const revocations = sizeOf({ quick: 8, all: 200, measured: 200 });
const rotations = sizeOf({ quick: 3, all: 20, measured: 20 });
/** Without Redis, which has no part in this. */
const fewer = { revocations: sizeOf({ quick: 4, all: 40, measured: 40 }), rotations: 2 };
const timeoutMs = 900_000;

let bench: RevocationBench | undefined;
beforeAll(async () => {
  if (canRunMachines) bench = await RevocationBench.create({ machines: gateways });
}, timeoutMs);
afterAll(() => bench?.[Symbol.asyncDispose](), timeoutMs);

function started(): RevocationBench {
  if (bench === undefined) throw new Error("the gateways are not started");
  return bench;
}

/** Revocations and rotations at each gateway in turn; no receipt says more than is so. */
async function changeKeys(
  what: string,
  limitMs: number,
  counts = { revocations, rotations },
): Promise<void> {
  const bench = started();
  for (const [index, key] of (await bench.issueKeys(counts.revocations)).entries()) {
    expect(new Set(await bench.revokeEverywhere(key, index))).toEqual(new Set([401]));
  }
  for (let count = 0; count < counts.rotations; count += 1) {
    expect(new Set(await bench.rotate(count))).toEqual(new Set([200]));
  }
  const { old, current } = await bench.replaceCompromised(1);
  expect([new Set(old), new Set(current)]).toEqual([new Set([401]), new Set([200])]);
  const times = bench.takeTimesMs();
  const [middle = 0, longest = 0] = [times[Math.floor(times.length / 2)], times.at(-1)];
  report({
    check: `revocation ${what}`,
    name: `a revoked key is refused by ${gateways} gateways ${what}`,
    value: `${longest} ms, median ${middle} ms, of ${counts.revocations}`,
    limit: `<= ${limitMs} ms`,
    isMet: longest <= limitMs,
  });
  expect(Object.keys(bench.load.statuses())).toEqual(["200"]);
}

testWithMachines(
  `${revocations} revocations and ${rotations} rotations reach every gateway`,
  () => changeKeys("with messages", 1_000),
  timeoutMs,
);

testWithMachines(
  `${revocations} revocations and ${rotations} rotations reach every gateway without messages`,
  async () => {
    const { messages } = started();
    expect(messages.heard).toBeGreaterThan(0);
    await messages.drop();
    const before = messages.heard;
    await changeKeys("without messages", 10_000);
    expect(messages.heard).toBe(before);
    await messages.restore();
  },
  timeoutMs,
);

testWithMachines(
  `${fewer.revocations} revocations and ${fewer.rotations} rotations reach every gateway without Redis`,
  async () => {
    const { valkey } = started().stack;
    await valkey.kill();
    await changeKeys("without Redis", 1_000, fewer);
    await valkey.start();
  },
  timeoutMs,
);
