import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Figure } from "../figure.ts";
import { startChild } from "../stand/child.ts";
import { memoryBytes, processesOf } from "../stand/process-usage.ts";
import { freePort } from "../stand/reachable.ts";
import { summarize } from "../statistics.ts";
import { targets } from "../targets.ts";
import type { OwnContext } from "./context.ts";

const answerTargetSeconds = 2;
const startLimitMs = 30_000;
const pauseMs = 5;
/** Until nothing of the start is left to do. */
const restMs = 4_000;

/** The demo as `npm start` begins it: time to its first answer, and memory of all its processes. */
export async function measureStart(context: OwnContext): Promise<readonly Figure[]> {
  const { plan, progress, signal } = context;
  const starts: Start[] = [];
  for (let round = 1; round <= plan.rounds; round += 1) {
    progress(`start of the demo: round ${round} of ${plan.rounds}`);
    signal.throwIfAborted();
    starts.push(await startDemo());
  }
  return [
    {
      name: "start.first_answer",
      title: "`npm start` to the first answer",
      unit: "s",
      sluice: summarize(starts.map(({ seconds }) => seconds)).median,
      target: answerTargetSeconds,
    },
    {
      name: "start.memory",
      title: "Memory of the demo at rest, all processes",
      unit: "MB",
      sluice: summarize(starts.map(({ megabytes }) => megabytes)).median,
      target: targets.atRestMb,
    },
  ];
}

interface Start {
  readonly seconds: number;
  readonly megabytes: number;
}

async function startDemo(): Promise<Start> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-start-"));
  const port = freePort();
  const addresses = ["--data", `127.0.0.1:${port}`, "--admin", "127.0.0.1:0"];
  const startedAt = performance.now();
  try {
    await using child = startChild({
      command: ["npm", "start", "--", ...addresses, "--data-dir", folder],
      logPath: join(folder, "output.log"),
    });
    const deadline = startedAt + startLimitMs;
    while (!(await answers(port))) {
      if (performance.now() > deadline) throw new Error(`no answer:\n${child.complaints()}`);
      await Bun.sleep(pauseMs);
    }
    const seconds = (performance.now() - startedAt) / 1_000;
    await Bun.sleep(restMs);
    // npm is not of the gateway.
    const [, ...own] = processesOf(child.pid);
    return { seconds, megabytes: memoryBytes(own) / 1_000_000 };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Any answer of the gateway will do; without a key it is 401. */
async function answers(port: number): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${port}/v1/models`)).status === 401;
  } catch {
    return false;
  }
}
