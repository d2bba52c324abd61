import { expect, test } from "bun:test";
import { Random } from "../../simulator/answer/random.ts";
import { planCall, wholeMix } from "../support/ledger-truth-mix.ts";
import { ProcessBench, until } from "../support/ledger-truth-process.ts";
import { sizeOf } from "../support/requirement.ts";
import { report } from "../support/scorecard.ts";
import { processOf, type ServingProcess } from "../support/sluice-process.ts";

const kills = sizeOf({ quick: 3, all: 6, measured: 30 });
const callers = 8;
const shortMix = wholeMix.map(({ tokens, ...part }) =>
  tokens === undefined ? part : { ...part, tokens: [1, 12] as const },
);

/** Two processes that only use processor time. */
function keepBusy(): Disposable {
  const loops = [1, 2].map(() => Bun.spawn(["sh", "-c", "while :; do :; done"]));
  return { [Symbol.dispose]: () => loops.forEach((loop) => loop.kill("SIGKILL")) };
}

async function isServing({ dataUrl }: ServingProcess): Promise<boolean> {
  const response = await fetch(`${dataUrl}/readyz`, { keepalive: false }).catch(() => undefined);
  return response?.status === 200;
}

/** Milliseconds without a process; in a new gateway, so that no backoff exceeds the first. */
async function killUnderLoad(seed: number): Promise<number> {
  await using bench = await ProcessBench.create({
    keys: callers,
    simulator: { tokensPerSecond: 50 },
  });
  await using serving = await bench.serve();
  const random = new Random(seed);
  let isOver = false;
  let planned = 0;
  const calling = bench.call(serving, { from: 0, count: callers }, () => {
    planned += 1;
    return isOver ? undefined : planCall(shortMix, random, `r${seed}-${planned}`);
  });
  await until("calls end", () => bench.calls.length > 100);
  // By then the program is loaded, even on a busy machine.
  await Bun.sleep(2_000);
  const { processPid: victim } = serving;
  const killedAt = performance.now();
  process.kill(victim, "SIGKILL");
  await until("the process is gone", () => ![victim, undefined].includes(processOf(serving.pid)));
  await until("somebody serves", () => isServing(serving));
  const outageMs = performance.now() - killedAt;
  const before = bench.calls.length;
  await until("calls end again", () => bench.calls.length > before + callers);
  isOver = true;
  await calling;
  return outageMs;
}

test(
  "a process that dies on a busy machine is replaced quickly",
  async () => {
    using _ = keepBusy();
    const outagesMs: number[] = [];
    for (let seed = 1; seed <= kills; seed += 1) outagesMs.push(await killUnderLoad(seed));
    const sorted = outagesMs.map(Math.round).toSorted((one, other) => one - other);
    const at = (share: number): number => sorted[Math.ceil(share * kills) - 1] ?? Infinity;
    process.stdout.write(`serving again after ${sorted.join(", ")} ms\n`);
    report({
      check: 15,
      name: `${kills} times kill -9 of the process beside two busy loops: serving again after, p99`,
      value: `${at(0.99)} ms (p50 ${at(0.5)} ms)`,
      limit: "<= 1000 ms",
      isMet: at(0.99) <= 1_000,
    });
    // Tolerance for a machine that runs other tests too.
    expect(at(0.5)).toBeLessThan(5_000);
  },
  60_000 + kills * 30_000,
);
