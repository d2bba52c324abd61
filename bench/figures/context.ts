import { driveCalls, type Driver } from "../load/drive-calls.ts";
import { chatRequest } from "../load/requests.ts";
import type { BenchPlan } from "../plan.ts";
import { cpuMicroseconds } from "../stand/process-usage.ts";
import type { Gateway, Stand } from "../stand/stand.ts";

/** The parameters of a group of figures that compares gateways. */
export interface FigureContext {
  readonly stand: Stand;
  readonly plan: BenchPlan;
  readonly driver: Driver;
  readonly progress: (line: string) => void;
}

/** The parameters of a group of figures that compares nothing with nginx. */
export interface OwnContext {
  readonly plan: BenchPlan;
  readonly signal: AbortSignal;
  readonly progress: (line: string) => void;
}

/** One measurement of each gateway, one soon after the other. */
export interface Round<Value> {
  readonly nginx: Value;
  readonly sluice: Value;
  /** By the peer's name; a peer whose load failed has none. */
  readonly peers: ReadonlyMap<string, Value>;
}

/**
 * Measures the gateways alternately, so that other load of the machine affects all. A peer that
 * fails, or takes too long, is left out.
 */
export async function alternate<Value>(
  context: FigureContext,
  subject: string,
  measure: (gateway: Gateway, context: FigureContext) => Promise<Value>,
): Promise<readonly Round<Value>[]> {
  const rounds: Round<Value>[] = [];
  const { stand, plan, progress } = context;
  const failed = new Set<Gateway>();
  for (let round = 1; round <= plan.rounds; round += 1) {
    progress(`${subject}: round ${round} of ${plan.rounds}`);
    const nginx = await measure(stand.nginx, context);
    const sluice = await measure(stand.sluice, context);
    const peers = new Map<string, Value>();
    for (const peer of stand.peers) {
      if (failed.has(peer)) continue;
      const value = await tryPeer(`${subject}: ${peer.name}`, context, (own) => measure(peer, own));
      if (value === undefined) failed.add(peer);
      else peers.set(peer.name, value);
    }
    rounds.push({ nginx, sluice, peers });
  }
  return rounds;
}

/** Undefined if the load of a peer fails, or takes too long. */
export async function tryPeer<Value>(
  subject: string,
  context: FigureContext,
  load: (context: FigureContext) => Promise<Value>,
): Promise<Value | undefined> {
  const { driver, plan, progress } = context;
  const signal = AbortSignal.any([driver.signal, AbortSignal.timeout(plan.peerMs)]);
  try {
    return await load({ ...context, driver: { ...driver, signal } });
  } catch (error) {
    driver.signal.throwIfAborted();
    progress(`${subject}: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}

const connections = 16;

/** The first calls of a process compile code and fill caches; a server runs for weeks. */
export async function warmUp(
  gateway: Gateway,
  { plan, driver }: FigureContext,
  request = chatRequest(),
): Promise<void> {
  const load = { destination: gateway, request, connections };
  const deadline = performance.now() + plan.warmUpMs;
  let done = 0;
  while (done < plan.warmUpCalls && performance.now() < deadline) {
    done += (await driveCalls({ ...load, durationMs: plan.callsMs }, driver)).calls;
  }
}

/** CPU time that all processes of a gateway use for a chat call, in microseconds. */
export async function callCpu(
  gateway: Gateway,
  { plan, driver }: FigureContext,
  request = chatRequest(),
): Promise<number> {
  const load = { destination: gateway, request, connections, durationMs: plan.callsMs };
  const { cpu, result } = await cpuDuring(gateway, () => driveCalls(load, driver));
  return cpu / result.calls;
}

/** CPU time that all processes of a gateway use while something happens, in microseconds. */
export async function cpuDuring<Value>(
  gateway: Pick<Gateway, "pids">,
  work: () => Promise<Value>,
): Promise<{ readonly cpu: number; readonly result: Value }> {
  const before = cpuMicroseconds(gateway.pids());
  const result = await work();
  return { cpu: cpuMicroseconds(gateway.pids()) - before, result };
}
