import { expect, test } from "bun:test";
import { JoinedGateway } from "../../test/support/joined-gateway.ts";
import { runsOf } from "../../test/support/requirement.ts";

const histories = runsOf(1_000);

test(`in ${histories} histories of several workers, no call is made twice at once or once more`, async () => {
  const sums = { runs: 0, replays: 0, reused: 0, unavailable: 0, crashes: 0 };
  for (let seed = 0; seed < histories; seed += 1) {
    const gateway = new JoinedGateway(seed);
    await gateway.run().catch((error: unknown) => {
      throw new Error(`seed ${seed}`, { cause: error });
    });
    for (const name of ["runs", "replays", "reused", "unavailable", "crashes"] as const) {
      sums[name] += gateway.counts[name];
    }
  }
  process.stdout.write(`${histories} histories of several workers: ${JSON.stringify(sums)}\n`);
  for (const sum of Object.values(sums)) expect(sum).toBeGreaterThan(histories / 20);
}, 120_000);
