import { expect, test } from "bun:test";
import { Random } from "../../simulator/answer/random.ts";
import {
  longStreams,
  planCall,
  wholeMix,
  type MixPart,
  type PlannedCall,
} from "../support/ledger-truth-mix.ts";
import { ProcessBench, until, untilStored } from "../support/ledger-truth-process.ts";
import { checkLedger, sumRows } from "../support/ledger-truth.ts";
import { isComplete, sizeOf } from "../support/requirement.ts";
import type { ServingProcess } from "../support/sluice-process.ts";

const kills = sizeOf({ quick: 3, all: 10, measured: 25 });
const streams = isComplete ? 200 : 60;
const shortCallers = 32;
const seed = 77;
/** Short answers of all kinds. */
const shortMix = wholeMix.map(({ tokens, ...part }) =>
  tokens === undefined ? part : { ...part, tokens: [1, 12] as const },
);

test(
  `${kills} kills under ${streams} open streams lose no call and count none twice`,
  async () => {
    await using bench = await ProcessBench.create({
      keys: streams + shortCallers,
      simulator: { tokensPerSecond: 20 },
      // Small files, so that some kills happen between two of them.
      sections: { ledger: "{ segment_size: 64KiB }" },
    });
    const random = new Random(seed);
    for (let kill = 0; kill < kills; kill += 1) {
      if (kill % 5 === 1) await killEarly(bench, random.integer(50, 600));
      await killUnderLoad(bench, { kill, random });
    }
    await using last = await bench.serve();
    await untilStored(last);
    last.signal("SIGTERM");
    expect(await last.exited).toBe(0);
    const { rows, rollUps } = await bench.stored();
    const report = checkLedger({ calls: bench.calls, rows, truth: bench.simulator.truth.entries });
    process.stdout.write(`${kills} kills: ${Bun.inspect(report)}\n`);
    expect(report).toMatchObject({ missing: 0, extra: 0, wrongEnds: 0, wrongTokens: 0 });
    expect(rollUps).toEqual(sumRows(rows));
    const interrupted = rows.filter(({ outcome }) => outcome === "interrupted");
    // A crash costs what its calls may have cost.
    expect(interrupted.filter(({ costNano = 0 }) => costNano === 0)).toEqual([]);
    const answered = rows.filter(({ outcome }) => outcome === "completed");
    expect(answered.filter(({ costNano = 0 }) => costNano === 0)).toEqual([]);
    expect(interrupted.length).toBeGreaterThanOrEqual(kills * streams * 0.9);
    expect(report.outcomes["completed: completed, upstream"]).toBeGreaterThan(kills * 10);
  },
  isComplete ? 900_000 : 60_000,
);

interface Killing {
  readonly kill: number;
  readonly random: Random;
}

async function killUnderLoad(bench: ProcessBench, { kill, random }: Killing): Promise<void> {
  await using serving = await bench.serve();
  let isKilled = false;
  let planned = 0;
  const next = (mix: readonly MixPart[]) => (): PlannedCall | undefined => {
    if (isKilled) return undefined;
    planned += 1;
    return planCall(mix, random, `k${kill}-${planned}`);
  };
  const calling = Promise.all([
    bench.call(serving, { from: 0, count: streams }, next(longStreams)),
    bench.call(serving, { from: streams, count: shortCallers }, next(shortMix)),
  ]);
  await untilOpen(bench, serving);
  // Sometimes long enough for checkpoints.
  await Bun.sleep(isComplete && kill % 10 === 5 ? 6_000 : random.integer(0, 1_200));
  isKilled = true;
  serving.kill();
  await calling;
  await bench.untilUpstreamIsFree();
}

async function untilOpen(bench: ProcessBench, serving: ServingProcess): Promise<void> {
  await until("the streams are open", () => {
    if (serving.text().includes("unhandled failure")) throw new Error(serving.text());
    return bench.simulator.openCalls >= streams;
  });
}

/** A kill during the start, perhaps during the replay. */
async function killEarly({ configPath }: ProcessBench, afterMs: number): Promise<void> {
  const main = new URL("../../src/main.ts", import.meta.url).pathname;
  const command = [main, "serve", "--config", configPath];
  const child = Bun.spawn([process.execPath, ...command], {
    stdio: ["ignore", "ignore", "ignore"],
    env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "" },
  });
  await Bun.sleep(afterMs);
  child.kill("SIGKILL");
  await child.exited;
}
