import type { Figure } from "../figure.ts";
import { driveCalls, type CallResult } from "../load/drive-calls.ts";
import { chatRequest } from "../load/requests.ts";
import type { Destination } from "../stand/stand.ts";
import { summarize } from "../statistics.ts";
import type { FigureContext } from "./context.ts";

const connectionCounts = [1, 16, 64] as const;
/** The 99th percentile at 16 connections, in milliseconds. */
const target = { connections: 16, addedMs: 1.5 } as const;

interface Round {
  readonly direct: CallResult;
  readonly nginx: CallResult;
  readonly sluice: CallResult;
}

/** The latency that a gateway adds: through it, minus direct to the upstream. */
export async function measureLatency(context: FigureContext): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  for (const connections of connectionCounts) {
    const rounds: Round[] = [];
    for (let round = 1; round <= context.plan.rounds; round += 1) {
      const { rounds: count } = context.plan;
      context.progress(`latency at ${connections} connections: round ${round} of ${count}`);
      rounds.push(await measureRound(connections, context));
    }
    figures.push(describe(rounds, connections, "p50"), describe(rounds, connections, "p99"));
  }
  return figures;
}

async function measureRound(connections: number, context: FigureContext): Promise<Round> {
  const { stand, plan, driver } = context;
  const request = chatRequest();
  const drive = (destination: Destination): Promise<CallResult> =>
    driveCalls({ destination, request, connections, durationMs: plan.latencyMs }, driver);
  const direct = await drive(stand.direct);
  const nginx = await drive(stand.nginx);
  const sluice = await drive(stand.sluice);
  return { direct, nginx, sluice };
}

function describe(
  rounds: readonly Round[],
  connections: number,
  percentile: "p50" | "p99",
): Figure {
  const millisecondsOf = (way: keyof Round): number[] =>
    rounds.map((round) => round[way][percentile] / 1_000);
  const direct = millisecondsOf("direct");
  const addedBy = (way: "nginx" | "sluice"): number[] =>
    millisecondsOf(way).map((value, round) => value - (direct[round] ?? NaN));
  const isJudged = connections === target.connections && percentile === "p99";
  return {
    name: `latency.${percentile}_at_${connections}`,
    title: `Latency ${percentile}, connections: ${connections}`,
    unit: "ms",
    direct: summarize(direct).median,
    nginx: summarize(millisecondsOf("nginx")).median,
    sluice: summarize(millisecondsOf("sluice")).median,
    comparison: {
      kind: "added",
      value: summarize(addedBy("sluice")),
      nginx: summarize(addedBy("nginx")),
    },
    ...(isJudged && { target: target.addedMs }),
  };
}
