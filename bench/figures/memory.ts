import type { Figure } from "../figure.ts";
import { driveCalls } from "../load/drive-calls.ts";
import { openStreams } from "../load/drive-streams.ts";
import { chatRequest } from "../load/requests.ts";
import { memoryBytes } from "../stand/process-usage.ts";
import type { Gateway } from "../stand/stand.ts";
import { summarize } from "../statistics.ts";
import { targets } from "../targets.ts";
import type { FigureContext } from "./context.ts";

const connections = 16;
/** The tolerance for equal memory, because of garbage collection. */
const targetGrowth = 1.1;
/** Slow enough for thousands of streams without a busy core. */
const openPauseMs = 1_000;
const opensPerSecond = 1_000;
const sliceMs = 1_000;
const settleMs = 100;
const settleReadings = 5;

/** Memory of a new gateway: at rest, with open streams, and after calls. */
export async function measureMemory(context: FigureContext): Promise<readonly Figure[]> {
  await using sluice = await context.stand.startFreshSluice();
  const atRest = await settledBytes(sluice);
  const figures: Figure[] = [
    { ...memoryFigure("at_rest", "at rest", atRest), target: targets.atRestMb },
  ];
  for (const streams of context.plan.openStreams) {
    context.progress(`memory: ${streams} open streams`);
    figures.push({
      name: `memory.per_stream_at_${streams}`,
      title: `Memory of each of ${streams} open streams`,
      unit: "kB",
      nginx: await kilobytesPerStream(context.stand.nginx, streams, context),
      // Code compiled for the first streams counts as theirs.
      sluice: await kilobytesPerStream(sluice, streams, { ...context, restingBytes: atRest }),
      target: targets.openStreamKb,
    });
  }
  return [...figures, ...(await measureAfterCalls(sluice, context))];
}

async function measureAfterCalls(
  gateway: Gateway,
  context: FigureContext,
): Promise<readonly Figure[]> {
  const [few, many] = context.plan.memoryCalls;
  const done = await drive(gateway, few, context);
  const afterFew = await settledBytes(gateway);
  await drive(gateway, many - done, context);
  const afterMany = await settledBytes(gateway);
  return [
    {
      ...memoryFigure("after_few_calls", `after ${few} calls`, afterFew),
      target: targets.afterCallsMb,
    },
    {
      ...memoryFigure("after_many_calls", `after ${many} calls`, afterMany),
      comparison: { kind: "growth", value: summarize([afterMany / afterFew]) },
      target: targetGrowth,
    },
  ];
}

/** The minimum of some readings, because freed memory returns to the system with a delay. */
export async function settledBytes(gateway: Gateway): Promise<number> {
  let least = Infinity;
  for (let reading = 0; reading < settleReadings; reading += 1) {
    await Bun.sleep(settleMs);
    least = Math.min(least, memoryBytes(gateway.pids()));
  }
  return least;
}

/** At least this many calls, in slices because loads are timed. Resolves to their number. */
async function drive(
  destination: Gateway,
  wanted: number,
  { driver, progress }: FigureContext,
): Promise<number> {
  const request = chatRequest();
  let done = 0;
  while (done < wanted) {
    progress(`memory: ${done} of ${wanted} calls`);
    const load = { destination, request, connections, durationMs: sliceMs };
    done += (await driveCalls(load, driver)).calls;
  }
  return done;
}

function memoryFigure(name: string, moment: string, bytes: number): Figure {
  return {
    name: `memory.${name}`,
    title: `Memory ${moment}`,
    unit: "MB",
    sluice: bytes / 1_000_000,
  };
}

async function kilobytesPerStream(
  gateway: Gateway,
  streams: number,
  { driver, plan, restingBytes }: FigureContext & { readonly restingBytes?: number },
): Promise<number> {
  const before = restingBytes ?? memoryBytes(gateway.pids());
  const openWithinMs = (streams / opensPerSecond) * 1_000;
  const chunks = Math.ceil((openWithinMs + plan.openStreamsMs) / openPauseMs) + 10;
  const load = { streams, chunks, pauseMs: openPauseMs };
  await using open = openStreams({
    destination: gateway,
    load,
    openWithinMs,
    signal: driver.signal,
  });
  await open.begun;
  await Bun.sleep(plan.openStreamsMs);
  return (memoryBytes(gateway.pids()) - before) / streams / 1_000;
}
