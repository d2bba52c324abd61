import type { Figure } from "./figure.ts";
import { measureBedrock } from "./figures/bedrock.ts";
import { measureCalls } from "./figures/calls.ts";
import { measureChunks } from "./figures/chunks.ts";
import type { FigureContext } from "./figures/context.ts";
import { measureEmbeddings } from "./figures/embeddings.ts";
import { measureLatency } from "./figures/latency.ts";
import { measureMemory } from "./figures/memory.ts";
import { measureThroughput } from "./figures/throughput.ts";
import { driveCalls } from "./load/drive-calls.ts";
import { chatRequest, embeddingsRequest } from "./load/requests.ts";
import { describeMachine, type MachineDescription } from "./machine.ts";
import { plans, type PlanName } from "./plan.ts";
import { startStand } from "./stand/stand.ts";

/** Groups of figures, in the order they are measured. */
export const groups = {
  calls: measureCalls,
  chunks: measureChunks,
  bedrock: measureBedrock,
  latency: measureLatency,
  throughput: measureThroughput,
  embeddings: measureEmbeddings,
  memory: measureMemory,
} as const satisfies Record<string, (context: FigureContext) => Promise<readonly Figure[]>>;

export interface BenchOptions {
  readonly planName: PlanName;
  /** Name of the only group to measure; undefined for all. */
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

/** Starts what is measured, measures it, and ends all that was started, whatever happens. */
export async function runBench(options: BenchOptions): Promise<BenchReport> {
  const { planName, only, profileFolder, progress } = options;
  const plan = plans[planName];
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(plan.limitMs)]);
  progress("starting the upstream, nginx and Sluice");
  await using stand = await startStand({ profileFolder });
  const context = { stand, plan, driver: { folder: stand.folder, signal }, progress };
  await warmUp(context);
  const figures: Figure[] = [];
  for (const [name, measure] of Object.entries(groups)) {
    if (only !== undefined && only !== name) continue;
    signal.throwIfAborted();
    figures.push(...(await measure(context)));
  }
  return { plan: planName, machine: describeMachine(), figures };
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
