import { expect, test } from "bun:test";
import { RepeatingGateways } from "../../test/support/repeating-gateways.ts";
import { runsOf } from "../../test/support/requirement.ts";

const histories = runsOf(5_000);

test(`in ${histories} histories of several processes, no call is made twice at once or once more`, () => {
  const sums = { runs: 0, replays: 0, reused: 0, inUse: 0, unavailable: 0, kills: 0 };
  for (let seed = 0; seed < histories; seed += 1) {
    const gateways = new RepeatingGateways(seed);
    try {
      gateways.run();
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
    for (const name of Object.keys(gateways.counts) as (keyof typeof sums)[]) {
      sums[name] += gateways.counts[name];
    }
  }
  process.stdout.write(`${histories} histories of several processes: ${JSON.stringify(sums)}\n`);
  for (const sum of Object.values(sums)) expect(sum).toBeGreaterThan(histories / 20);
}, 120_000);
