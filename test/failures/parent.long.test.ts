import { expect, test } from "bun:test";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
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
import { metricsOf } from "../support/metrics-of.ts";
import { sizeOf } from "../support/requirement.ts";
import { report } from "../support/scorecard.ts";
import { startServing, type ServingProcess } from "../support/sluice-process.ts";

const kills = sizeOf({ quick: 2, all: 4, measured: 100 });
const streams = 20;
const shortCallers = 16;
const shortMix = wholeMix.map(({ tokens, ...part }) =>
  tokens === undefined ? part : { ...part, tokens: [1, 12] as const },
);

function createBench(more?: Readonly<Record<string, string>>): Promise<ProcessBench> {
  return ProcessBench.create({
    keys: streams + shortCallers,
    simulator: { tokensPerSecond: 20 },
    ...(more !== undefined && { sections: more }),
  });
}

async function isServing({ dataUrl }: ServingProcess): Promise<boolean> {
  try {
    const response = await fetch(`${dataUrl}/readyz`);
    await response.text();
    return response.status === 200;
  } catch {
    return false;
  }
}

/** Also true of one whose parent is gone and that nobody has buried. */
function hasEnded(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.startsWith("Z") === true;
  } catch {
    return true;
  }
}

/** Kills the process, perhaps with calls under way, and waits until another one serves. */
async function killProcess(serving: ServingProcess): Promise<void> {
  const victim = serving.processPid;
  expect(victim).not.toBe(serving.pid);
  process.kill(victim, "SIGKILL");
  await until("the process is gone", () => hasEnded(victim));
  await until("somebody serves", () => isServing(serving));
  expect(serving.processPid).not.toBe(victim);
}

test(
  "a process that is killed under load is replaced at the same address, and no call is lost",
  async () => {
    await using bench = await createBench();
    await using serving = await bench.serve();
    let isOver = false;
    let planned = 0;
    const random = new Random(5);
    const next = (mix: readonly MixPart[]) => (): PlannedCall | undefined => {
      if (isOver) return undefined;
      planned += 1;
      return planCall(mix, random, `w${planned}`);
    };
    const calling = Promise.all([
      bench.call(serving, { from: 0, count: streams }, next(longStreams)),
      bench.call(serving, { from: streams, count: shortCallers }, next(shortMix)),
    ]);
    for (let kill = 1; kill <= kills; kill += 1) {
      await until("streams are open", () => bench.simulator.openCalls >= streams);
      await Bun.sleep(300);
      await killProcess(serving);
    }
    const before = bench.calls.length;
    await until("calls end again", () => bench.calls.length > before + 50);
    isOver = true;
    serving.signal("SIGINT");
    await until("it ends", () => serving.text().includes("shutting down"));
    await Bun.sleep(50);
    serving.signal("SIGINT");
    await calling;
    await serving.exited;
    await using last = await bench.serve();
    await untilStored(last);
    last.signal("SIGINT");
    expect(await last.exited).toBe(0);

    const { rows, rollUps } = await bench.stored();
    const ledger = checkLedger({ calls: bench.calls, rows, truth: bench.simulator.truth.entries });
    const wrong = ledger.missing + ledger.extra + ledger.wrongEnds + ledger.wrongTokens;
    const name = "kill -9 of the process under load: rows wrong or missing";
    report({ check: 15, name, value: wrong, limit: 0, isMet: wrong === 0 });
    expect(ledger.problems).toEqual([]);
    expect(rollUps).toEqual(sumRows(rows));

    const crashes = serving.text().match(/ERROR process crashed process=1 .*signal=SIGKILL/g);
    expect(crashes).toHaveLength(kills);
  },
  60_000 + kills * 20_000,
);

test("a parent that is killed takes its process along, and the port is free", async () => {
  await using bench = await createBench();
  await using serving = await bench.serve();
  const { processPid, dataUrl } = serving;
  const calling = bench.call(serving, { from: 0, count: 4 }, callsOf(longStreams, 4));
  await until("the streams are open", () => bench.simulator.openCalls >= 4);
  const killedAt = performance.now();
  serving.signal("SIGKILL");
  await until("the process is gone", () => hasEnded(processPid));
  const goneMs = Math.round(performance.now() - killedAt);
  process.stdout.write(`the process is gone ${goneMs} ms after its parent\n`);
  await calling;
  await using next = await startServing([
    "--config",
    bench.configPath,
    "--data",
    new URL(dataUrl).host,
  ]);
  expect(next.dataUrl).toBe(dataUrl);
  await untilStored(next);
  next.signal("SIGINT");
  expect(await next.exited).toBe(0);
  const { rows } = await bench.stored();
  expect(rows.map(({ outcome }) => outcome)).toEqual(
    Array.from({ length: 4 }, () => "interrupted"),
  );
});

const preload = fileURLToPath(new URL("parent-bomb.ts", import.meta.url));

/** A gateway whose processes look for a bomb in a file. */
function startWithBomb(
  { configPath }: Pick<ProcessBench, "configPath">,
  bomb: string,
): Promise<ServingProcess> {
  return startServing(["--config", configPath], {
    SLUICE_TEST_BOMB: bomb,
    BUN_OPTIONS: `--preload ${preload}`,
  });
}

test("an exception that nobody catches is told by class and place, and never by its message", async () => {
  await using bench = await createBench();
  const prompt = "CANARY-of-a-prompt";
  const bomb = join(bench.folder, "bomb");
  await using serving = await startWithBomb(bench, bomb);
  const before = serving.processPid;
  await Bun.write(bomb, `${prompt}\n    at ${prompt} (${preload}:1:1)`);
  await until("the crash is in the log", () => serving.text().includes("process crashed"));
  rmSync(bomb);
  await until("another process serves", async () => {
    return serving.processPid !== before && (await isServing(serving));
  });
  expect(serving.text()).toMatch(
    new RegExp(`process crashed process=1 pid=${before} exitCode=1 .*error=TypeError`),
  );
  expect(serving.text()).toMatch(/at="watch \(test\/failures\/parent-bomb\.ts:\d+:\d+\)/);
  expect(serving.text()).not.toContain(prompt);
  serving.signal("SIGINT");
  expect(await serving.exited).toBe(0);
});

test("a process whose main thread hangs is ended by its control thread, and is back", async () => {
  await using bench = await createBench();
  const bomb = join(bench.folder, "bomb");
  await using serving = await startWithBomb(bench, bomb);
  const victim = serving.processPid;
  await Bun.write(bomb, "hang");
  await until("it is ended", () => hasEnded(victim));
  rmSync(bomb);
  await until("another process serves", async () => {
    return ![victim, serving.pid].includes(serving.processPid) && (await isServing(serving));
  });
  expect(serving.text()).toContain("the main thread hangs");
  serving.signal("SIGINT");
  expect(await serving.exited).toBe(0);
});

test("a control thread that dies is replaced, and leads again while calls continue", async () => {
  await using bench = await createBench();
  const bomb = join(bench.folder, "bomb");
  await using serving = await startWithBomb(bench, bomb);
  const { processPid } = serving;
  const calling = bench.call(serving, { from: 0, count: 4 }, callsOf(shortMix, 60));
  for (let death = 1; death <= 2; death += 1) {
    await Bun.write(bomb, "control");
    await until("it has died", () => !existsSync(bomb));
    await until("another one leads", async () => {
      const metrics = await metricsOf(serving.adminUrl).catch(() => "");
      return metrics.includes("sluice_ledger_queue_rows");
    });
  }
  await calling;
  expect(serving.text()).not.toContain("process crashed");
  expect(serving.processPid).toBe(processPid);
  await untilStored(serving);
  serving.signal("SIGINT");
  expect(await serving.exited).toBe(0);
  const { rows } = await bench.stored();
  const ledger = checkLedger({ calls: bench.calls, rows, truth: bench.simulator.truth.entries });
  expect(ledger.problems).toEqual([]);
});

test("a process that crashes beside a broken file starts with the last configuration that worked", async () => {
  await using bench = await createBench();
  await using serving = await bench.serve();
  const good = readFileSync(bench.configPath, "utf8");
  await until("it serves", () => isServing(serving));
  await Bun.write(bench.configPath, `${good}\nnonsense: 1\n`);
  await until("it is refused", () => serving.text().includes("nonsense"));
  const victim = serving.processPid;
  process.kill(victim, "SIGKILL");
  await until("another one serves", async () => {
    return ![victim, serving.pid].includes(serving.processPid) && (await isServing(serving));
  });
  serving.signal("SIGINT");
  expect(await serving.exited).toBe(0);
});

test("SIGHUP ends a demo, whose terminal is gone, and nothing else", async () => {
  await using bench = await createBench();
  await using serving = await bench.serve();
  serving.signal("SIGHUP");
  const anyPort = ["--data", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
  await using demo = await startServing(["--data-dir", join(bench.folder, "demo"), ...anyPort]);
  demo.signal("SIGHUP");
  expect(await demo.exited).toBe(0);
  expect(await isServing(serving)).toBe(true);
});

test("a parent needs a small part of a process's memory", async () => {
  await using bench = await createBench();
  await using serving = await bench.serve();
  const own = residentBytesOf(serving.pid);
  const megabytes = Math.round(own / 1_000_000);
  process.stdout.write(`the parent has ${megabytes} MB\n`);
  expect(own).toBeLessThan(residentBytesOf(serving.processPid) / 2);
});

function residentBytesOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * 4096;
}

function callsOf(mix: readonly MixPart[], count: number) {
  const random = new Random(count);
  let planned = 0;
  return (): PlannedCall | undefined => {
    if (planned === count) return undefined;
    planned += 1;
    return planCall(mix, random, `${count}-${planned}`);
  };
}
