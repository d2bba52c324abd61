import type { Figure } from "../figure.ts";
import { driveCalls, type CallLoad, type CallResult } from "../load/drive-calls.ts";
import { chatRequest } from "../load/requests.ts";
import { summarize } from "../statistics.ts";
import { compared, pick } from "./compare.ts";
import { alternate, type FigureContext, type Round } from "./context.ts";

const connectionCounts = [1, 16, 64] as const;
/** The 99th percentile at 16 connections, in milliseconds. */
const target = { connections: 16, ms: 4 } as const;

/** The latency that a gateway adds in a closed loop: through it, minus direct to the upstream. */
export async function measureLatency(context: FigureContext): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  for (const connections of connectionCounts) {
    const subject = `connections: ${connections}`;
    const load = { connections, durationMs: context.plan.latencyMs };
    const rounds = await alternate(context, `latency, ${subject}`, (gateway, own) =>
      driveBoth({ ...load, destination: gateway, request: chatRequest() }, own),
    );
    const [median, tail] = latencyFigures(rounds, { name: `at_${connections}`, subject });
    const isJudged = connections === target.connections;
    figures.push(median, { ...tail, ...(isJudged && { target: target.ms, judges: "value" }) });
  }
  return figures;
}

/** The same load to the upstream and through a gateway. */
export interface BothWays {
  readonly direct: CallResult;
  readonly through: CallResult;
}

export async function driveBoth(
  load: CallLoad,
  { stand, driver }: FigureContext,
): Promise<BothWays> {
  const direct = await driveCalls({ ...load, destination: stand.direct }, driver);
  return { direct, through: await driveCalls(load, driver) };
}

interface Named {
  /** The end of the figures' names. */
  readonly name: string;
  readonly subject: string;
  /** Default: `latency`. */
  readonly group?: string;
}

/** The median and the 99th percentile, with what the gateways add to them. */
export function latencyFigures(
  rounds: readonly Round<BothWays>[],
  { name, subject, group = "latency" }: Named,
): readonly [Figure, Figure] {
  const figureOf = (percentile: "p50" | "p99"): Figure => {
    const through = pick(rounds, (both) => both.through[percentile] / 1_000);
    const added = pick(
      rounds,
      (both) => (both.through[percentile] - both.direct[percentile]) / 1_000,
    );
    const direct = pick(rounds, (both) => both.direct[percentile] / 1_000);
    return {
      name: `${group}.${percentile}_${name}`,
      title: `Latency ${percentile}, ${subject}`,
      unit: "ms",
      ...compared(through, added, "added"),
      direct: summarize(direct.map(({ sluice }) => sluice)).median,
    };
  };
  return [figureOf("p50"), figureOf("p99")];
}
