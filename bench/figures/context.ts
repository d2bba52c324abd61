import type { Driver } from "../load/drive-calls.ts";
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

export interface Pair<Value> {
  readonly nginx: Value;
  readonly sluice: Value;
}

/** Measures the gateways alternately, so that other load of the machine affects both. */
export async function alternate<Value>(
  { stand, plan, progress }: FigureContext,
  subject: string,
  measure: (gateway: Gateway) => Promise<Value>,
): Promise<readonly Pair<Value>[]> {
  const pairs: Pair<Value>[] = [];
  for (let round = 1; round <= plan.rounds; round += 1) {
    progress(`${subject}: round ${round} of ${plan.rounds}`);
    const nginx = await measure(stand.nginx);
    const sluice = await measure(stand.sluice);
    pairs.push({ nginx, sluice });
  }
  return pairs;
}

/** CPU time that all processes of a gateway use while something happens, in microseconds. */
export async function cpuDuring<Value>(
  gateway: Gateway,
  work: () => Promise<Value>,
): Promise<{ readonly cpu: number; readonly result: Value }> {
  const pids = gateway.pids();
  const before = cpuMicroseconds(pids);
  const result = await work();
  return { cpu: cpuMicroseconds(pids) - before, result };
}
