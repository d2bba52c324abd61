import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { Figure } from "../figure.ts";
import { driveCalls } from "../load/drive-calls.ts";
import { chatRequest } from "../load/requests.ts";
import { BenchLedger } from "../reports/bench-ledger.ts";
import { nameOf } from "../stand/process-usage.ts";
import type { SluiceGateway } from "../stand/sluice.ts";
import { quantile, summarize } from "../statistics.ts";
import { warmUp, type FigureContext } from "./context.ts";

/** And so as many rows. */
const perSecond = 1_000;
const mostConnections = 256;
const dayMs = 86_400_000;
const reportDays = 30;
/** The load itself before it is watched, once the code is compiled. */
const leadMs = 3_000;
const targetMs = 3;
const dumpLimitMs = 5_000;
const pauseMs = 20;

const samplesSchema = z.strictObject({
  held: z.array(z.number()),
  running: z.array(z.number()),
  busy: z.array(z.number()),
});

/** How long the event loops are held while rows are ingested and a report of 30 days is read. */
export async function measureHolds(context: FigureContext): Promise<readonly Figure[]> {
  const { stand, plan, driver, progress } = context;
  progress("holds: filling a ledger of 30 days");
  await using sluice = await stand.startFreshSluice({
    preload: join(import.meta.dir, "../stand/watch-loop.ts"),
    watchFolder: stand.folder,
    fill: (path) => fillLedger(path, plan.reportedCalls, driver.signal),
  });
  const load = {
    destination: sluice,
    request: chatRequest(),
    connections: mostConnections,
    perSecond,
  };
  await warmUp(sluice, context);
  const before = await driveCalls({ ...load, durationMs: leadMs }, driver);
  const pid = pidOf(sluice, "sluice-1");
  await takeSamples(pid, stand.folder);
  progress("holds: calls, and reports of 30 days");
  const reading = new AbortController();
  const reports = readReports(sluice, AbortSignal.any([reading.signal, driver.signal]));
  const during = await driveCalls({ ...load, durationMs: plan.holdsMs }, driver);
  reading.abort();
  const count = await reports;
  const { held, running, busy } = await takeSamples(pid, stand.folder);
  const title = `Event loop held, ${perSecond} rows a second, ${count} reports`;
  return [
    figureOf("p999", `${title}, p99.9`, { samples: running, share: 0.999, target: targetMs }),
    figureOf("longest", `${title}, longest`, { samples: running, share: 1 }),
    figureOf("p999_busy", "the same of CPU time, p99.9", { samples: busy, share: 0.999 }),
    figureOf("p999_wall", "the same with waits for a core, p99.9", { samples: held, share: 0.999 }),
    {
      name: "holds.p99",
      title: `Latency p99 of ${perSecond} calls a second while reports are read`,
      unit: "ms",
      sluice: during.p99 / 1_000,
      comparison: { kind: "growth", value: summarize([during.p99 / before.p99]) },
    },
  ];
}

async function fillLedger(path: string, count: number, signal: AbortSignal): Promise<void> {
  const until = Date.now();
  await using ledger = BenchLedger.inFile(path);
  await ledger.fill({ since: until - reportDays * dayMs, until, count }, signal);
}

/** One report after another; resolves to their number. */
async function readReports(sluice: SluiceGateway, signal: AbortSignal): Promise<number> {
  const query = `since=${reportDays}d&step=hour&by=key`;
  const url = `http://127.0.0.1:${sluice.adminPort}/admin/v1/usage/series?${query}`;
  const headers = { authorization: sluice.adminAuthorization };
  let count = 0;
  while (!signal.aborted) {
    const response = await fetch(url, { headers });
    const text = await response.text();
    if (!response.ok) throw new Error(`a report failed: ${text}`);
    count += 1;
  }
  return count;
}

export function pidOf(gateway: SluiceGateway, name: string): number {
  const pid = gateway.pids().find((one) => nameOf(one) === name);
  if (pid === undefined) throw new Error(`there is no process ${name}`);
  return pid;
}

/** What the process has sampled since the last time. */
async function takeSamples(pid: number, folder: string): Promise<z.infer<typeof samplesSchema>> {
  const path = join(folder, `${pid}.json`);
  rmSync(path, { force: true });
  process.kill(pid, "SIGUSR2");
  const deadline = performance.now() + dumpLimitMs;
  while (!existsSync(path)) {
    if (performance.now() > deadline) throw new Error("the event loop was not watched");
    await Bun.sleep(pauseMs);
  }
  await Bun.sleep(pauseMs);
  return samplesSchema.parse(JSON.parse(readFileSync(path, "utf8")));
}

interface Samples {
  readonly samples: readonly number[];
  readonly share: number;
  readonly target?: number;
}

function figureOf(name: string, title: string, { samples, share, target }: Samples): Figure {
  const sorted = Float64Array.from(samples).sort();
  const sluice = quantile(sorted, share);
  return { name: `holds.${name}`, title, unit: "ms", sluice, ...(target && { target }) };
}
