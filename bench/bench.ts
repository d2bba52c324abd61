import type { Figure } from "./figure.ts";
import { measureBedrock } from "./figures/bedrock.ts";
import { measureCalls } from "./figures/calls.ts";
import { measureChunks } from "./figures/chunks.ts";
import type { FigureContext, OwnContext } from "./figures/context.ts";
import { measureEmbeddings } from "./figures/embeddings.ts";
import { measureHolds } from "./figures/holds.ts";
import { measureLatency } from "./figures/latency.ts";
import { measureMemory } from "./figures/memory.ts";
import { measureStart } from "./figures/start.ts";
import { measureThroughput } from "./figures/throughput.ts";
import { measureWorkers } from "./figures/workers.ts";
import { driveCalls } from "./load/drive-calls.ts";
import { chatRequest, embeddingsRequest } from "./load/requests.ts";
import { measureLink } from "./link/measure-link.ts";
import { describeMachine, type MachineDescription } from "./machine.ts";
import { plans, type PlanName } from "./plan.ts";
import { measureReports } from "./reports/measure-reports.ts";
import { startStand } from "./stand/stand.ts";

/** Groups of figures that compare gateways, in the order they are measured. */
const comparedGroups = {
  calls: measureCalls,
  chunks: measureChunks,
  bedrock: measureBedrock,
  latency: measureLatency,
  throughput: measureThroughput,
  embeddings: measureEmbeddings,
  memory: measureMemory,
  workers: measureWorkers,
  holds: measureHolds,
} as const satisfies Record<string, (context: FigureContext) => Promise<readonly Figure[]>>;

/** Groups of figures that need neither a gateway nor nginx. */
const ownGroups = {
  start: measureStart,
  link: measureLink,
  reports: measureReports,
} as const satisfies Record<string, (context: OwnContext) => Promise<readonly Figure[]>>;

export const groupNames: readonly string[] = [
  ...Object.keys(comparedGroups),
  ...Object.keys(ownGroups),
];

/** Whether nginx is needed for this group, or for all groups if undefined. */
export function comparesGateways(only: string | undefined): boolean {
  return only === undefined || Object.hasOwn(comparedGroups, only);
}

export interface BenchOptions {
  readonly planName: PlanName;
  /** The only group to measure; undefined: all. */
  readonly only: string | undefined;
  readonly profileFolder: string | undefined;
  readonly signal: AbortSignal;
  readonly progress: (line: string) => void;
}

export interface BenchReport {
  readonly plan: PlanName;
  readonly machine: MachineDescription;
  readonly figures: readonly Figure[];
}

/** Starts the programs, measures them, and always ends them. */
export async function runBench(options: BenchOptions): Promise<BenchReport> {
  const { planName, only, progress } = options;
  const plan = plans[planName];
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(plan.limitMs)]);
  const figures: Figure[] = [];
  if (comparesGateways(only)) figures.push(...(await compareGateways({ ...options, signal })));
  for (const [name, measure] of Object.entries(ownGroups)) {
    if (only !== undefined && only !== name) continue;
    signal.throwIfAborted();
    figures.push(...(await measure({ plan, signal, progress })));
  }
  return { plan: planName, machine: describeMachine(), figures };
}

async function compareGateways(options: BenchOptions): Promise<readonly Figure[]> {
  const { planName, only, profileFolder, signal, progress } = options;
  const plan = plans[planName];
  progress("starting the upstream, nginx and Sluice");
  await using stand = await startStand({ profileFolder });
  const context = { stand, plan, driver: { folder: stand.folder, signal }, progress };
  await warmUp(context);
  const figures: Figure[] = [];
  for (const [name, measure] of Object.entries(comparedGroups)) {
    if (only !== undefined && only !== name) continue;
    signal.throwIfAborted();
    figures.push(...(await measure(context)));
  }
  return figures;
}

/** The first calls of a process compile code and fill caches; a server runs for weeks. */
async function warmUp({ stand, plan, driver, progress }: FigureContext): Promise<void> {
  progress("warming up");
  const durationMs = plan.warmUpMs;
  for (const destination of [stand.nginx, stand.sluice]) {
    await driveCalls({ destination, request: chatRequest(), connections: 16, durationMs }, driver);
    const request = embeddingsRequest();
    await driveCalls({ destination, request, connections: 1, durationMs: durationMs / 4 }, driver);
  }
}
