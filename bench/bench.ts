import type { Figure } from "./figure.ts";
import { measureAffinity } from "./figures/affinity.ts";
import { measureBedrock } from "./figures/bedrock.ts";
import { measureCalls } from "./figures/calls.ts";
import { measureChunks } from "./figures/chunks.ts";
import { tryPeer, warmUp, type FigureContext, type OwnContext } from "./figures/context.ts";
import { measureCoordinator } from "./figures/coordinator.ts";
import { measureCrowd } from "./figures/crowd.ts";
import { measureEmbeddings } from "./figures/embeddings.ts";
import { measureGarbage } from "./figures/garbage.ts";
import { measureHolds } from "./figures/holds.ts";
import { measureLatency } from "./figures/latency.ts";
import { measureMemory } from "./figures/memory.ts";
import { measureMoney } from "./figures/money.ts";
import { measurePaced } from "./figures/paced.ts";
import { measureStart } from "./figures/start.ts";
import { measureThroughput } from "./figures/throughput.ts";
import { driveCalls } from "./load/drive-calls.ts";
import { embeddingsRequest } from "./load/requests.ts";
import { describeMachine, type MachineDescription } from "./machine.ts";
import { plans, type BenchPlan, type PlanName } from "./plan.ts";
import { measureIngest } from "./reports/measure-ingest.ts";
import { measureReports } from "./reports/measure-reports.ts";
import type { PeerDescription } from "./stand/peer-description.ts";
import { startStand } from "./stand/stand.ts";

/** How long embeddings are asked for before they are measured. */
const embeddingsMs = 750;

/** Groups of figures that compare gateways, in the order they are measured. */
const comparedGroups = {
  calls: measureCalls,
  chunks: measureChunks,
  crowd: measureCrowd,
  bedrock: measureBedrock,
  latency: measureLatency,
  paced: measurePaced,
  throughput: measureThroughput,
  embeddings: measureEmbeddings,
  memory: measureMemory,
  garbage: measureGarbage,
  valkey: measureCoordinator,
  holds: measureHolds,
} as const satisfies Record<string, (context: FigureContext) => Promise<readonly Figure[]>>;

/** Groups of figures that need neither a gateway nor nginx. */
const ownGroups = {
  start: measureStart,
  money: measureMoney,
  affinity: measureAffinity,
  reports: measureReports,
  ingest: measureIngest,
} as const satisfies Record<string, (context: OwnContext) => Promise<readonly Figure[]>>;

/** The groups that measure peers, too: all that are measured if there are peers. */
const peerGroups: readonly string[] = ["calls", "chunks", "crowd", "latency", "paced"];

export const groupNames: readonly string[] = [
  ...Object.keys(comparedGroups),
  ...Object.keys(ownGroups),
];

/** Whether nginx is needed for this group, or for all groups if undefined. */
export function comparesGateways(only: string | undefined): boolean {
  return only === undefined || Object.hasOwn(comparedGroups, only);
}

export function comparesPeers(only: string | undefined): boolean {
  return only === undefined || peerGroups.includes(only);
}

export interface BenchOptions {
  readonly planName: PlanName;
  /** Undefined: as many as the plan says. */
  readonly rounds: number | undefined;
  /** The only group to measure; undefined: all. */
  readonly only: string | undefined;
  readonly profileFolder: string | undefined;
  readonly peers: readonly PeerDescription[];
  /** Where the peers are installed. */
  readonly installedFolder: string;
  readonly signal: AbortSignal;
  readonly progress: (line: string) => void;
}

export interface BenchReport {
  readonly plan: PlanName;
  readonly machine: MachineDescription;
  readonly figures: readonly Figure[];
  readonly peers: readonly Pick<PeerDescription, "name" | "notes">[];
}

/** Starts the programs, measures them, and always ends them. */
export async function runBench(options: BenchOptions): Promise<BenchReport> {
  const { planName, progress } = options;
  const plan = planOf(options);
  const limitMs = plan.limitMs * (1 + options.peers.length);
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(limitMs)]);
  const figures: Figure[] = [];
  if (comparesGateways(options.only)) {
    figures.push(...(await compareGateways({ ...options, signal })));
  }
  for (const [name, measure] of Object.entries(ownGroups)) {
    if (!isWanted(name, options)) continue;
    signal.throwIfAborted();
    figures.push(...(await measure({ plan, signal, progress })));
  }
  const peers = options.peers.map(({ name, notes }) => ({ name, notes }));
  return { plan: planName, machine: describeMachine(), figures, peers };
}

function planOf({ planName, rounds }: BenchOptions): BenchPlan {
  const plan = plans[planName];
  return rounds === undefined ? plan : { ...plan, rounds };
}

function isWanted(group: string, { only, peers }: BenchOptions): boolean {
  if (only !== undefined) return only === group;
  return peers.length === 0 || peerGroups.includes(group);
}

async function compareGateways(options: BenchOptions): Promise<readonly Figure[]> {
  const { signal, progress } = options;
  const plan = planOf(options);
  progress("starting the upstream and the gateways");
  await using stand = await startStand(options);
  const context = { stand, plan, driver: { folder: stand.folder, signal }, progress };
  await warmUpAll(context);
  const figures: Figure[] = [];
  for (const [name, measure] of Object.entries(comparedGroups)) {
    if (!isWanted(name, options)) continue;
    signal.throwIfAborted();
    figures.push(...(await measure(context)));
  }
  return figures;
}

async function warmUpAll(context: FigureContext): Promise<void> {
  const { stand, driver, progress } = context;
  progress("warming up");
  for (const gateway of [stand.nginx, stand.sluice]) {
    await warmUp(gateway, context);
    const request = embeddingsRequest();
    const load = { destination: gateway, request, connections: 1, durationMs: embeddingsMs };
    await driveCalls(load, driver);
  }
  for (const peer of stand.peers) {
    const subject = `warming up ${peer.name}`;
    progress(subject);
    const plan = { ...context.plan, warmUpMs: peer.warmUpMs ?? context.plan.warmUpMs };
    await tryPeer(subject, { ...context, plan }, (own) => warmUp(peer, own));
  }
}
