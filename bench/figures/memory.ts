import type { Figure } from "../figure.ts";
import { driveCalls } from "../load/drive-calls.ts";
import { openStreams } from "../load/drive-streams.ts";
import { chatRequest } from "../load/requests.ts";
import { residentBytes } from "../stand/process-usage.ts";
import type { Gateway } from "../stand/stand.ts";
import { summarize } from "../statistics.ts";
import type { FigureContext } from "./context.ts";

const connections = 16;
const targetKilobytes = 60;
/** Slow enough that thousands of streams keep no core busy. */
const openPauseMs = 1_000;
/** Streams are looked at after so many of their chunks. */
const watchedMs = 3_000;
const opensPerSecond = 1_000;
const sliceMs = 1_000;
const settleMs = 500;

/** Resident memory of a gateway without a past: at rest, after calls, and with streams open. */
export async function measureMemory(context: FigureContext): Promise<readonly Figure[]> {
  await using sluice = await context.stand.startFreshSluice();
  const { nginx } = context.stand;
  await Bun.sleep(settleMs);
  const atRest = residentBytes(sluice.pid);
  const figures: Figure[] = [memoryFigure("at_rest", "at rest", atRest)];
  figures.push(...(await measureAfterCalls(sluice, context)));
  for (const streams of context.plan.openStreams) {
    context.progress(`memory: ${streams} open streams`);
    figures.push({
      name: `memory.per_stream_at_${streams}`,
      title: `Memory of each of ${streams} open streams`,
      unit: "kB",
      nginx: await kilobytesPerStream(nginx, streams, context),
      sluice: await kilobytesPerStream(sluice, streams, context),
      target: targetKilobytes,
    });
  }
  return figures;
}

async function measureAfterCalls(
  gateway: Gateway,
  context: FigureContext,
): Promise<readonly Figure[]> {
  const [few, many] = context.plan.memoryCalls;
  const done = await drive(gateway, few, context);
  const afterFew = residentBytes(gateway.pid);
  await drive(gateway, many - done, context);
  const afterMany = residentBytes(gateway.pid);
  return [
    memoryFigure("after_few_calls", `after ${few} calls`, afterFew),
    {
      ...memoryFigure("after_many_calls", `after ${many} calls`, afterMany),
      comparison: { kind: "growth", value: summarize([afterMany / afterFew]) },
      target: 1,
    },
  ];
}

/** At least so many calls, in slices, because the load is bounded by time. Resolves with how many. */
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
  await Bun.sleep(settleMs);
  return done;
}

function memoryFigure(name: string, moment: string, bytes: number): Figure {
  return {
    name: `memory.${name}`,
    title: `Resident memory ${moment}`,
    unit: "MB",
    sluice: bytes / 1_000_000,
  };
}

async function kilobytesPerStream(
  destination: Gateway,
  streams: number,
  { driver }: FigureContext,
): Promise<number> {
  const before = residentBytes(destination.pid);
  const openWithinMs = (streams / opensPerSecond) * 1_000;
  const chunks = Math.ceil((openWithinMs + watchedMs) / openPauseMs) + 10;
  const load = { streams, chunks, pauseMs: openPauseMs };
  await using open = openStreams({ destination, load, openWithinMs, signal: driver.signal });
  await open.begun;
  await Bun.sleep(watchedMs);
  return (residentBytes(destination.pid) - before) / streams / 1_000;
}
