import type { Figure } from "../figure.ts";
import { driveCalls } from "../load/drive-calls.ts";
import { chatRequest } from "../load/requests.ts";
import type { Gateway } from "../stand/stand.ts";
import { summarize } from "../statistics.ts";
import { callCpu, warmUp, type FigureContext } from "./context.ts";

const throughputConnections = 64;
/** What a call may cost more with two workers, of all processes. */
const coordinationTarget = 10;

interface Round {
  readonly none: number;
  readonly one: number;
  readonly two: number;
}

type Gateways = Readonly<Record<keyof Round, Gateway>>;

/** What the division into processes costs and gains: none, one worker and two in turns. */
export async function measureWorkers(context: FigureContext): Promise<readonly Figure[]> {
  const { stand, progress } = context;
  progress("workers: starting gateways");
  await using none = await stand.startFreshSluice({ workers: "none" });
  await using one = await stand.startFreshSluice({ workers: 1 });
  await using two = await stand.startFreshSluice({ workers: 2 });
  const gateways = { none, one, two };
  for (const gateway of [none, one, two]) await warmUp(gateway, context);
  const cpu = await measureRounds(gateways, context, callCpu);
  const rates = await measureRounds(gateways, context, callsPerSecond);
  return [...describeCpu(cpu), ...describeRates(rates)];
}

async function measureRounds(
  gateways: Gateways,
  context: FigureContext,
  measure: (gateway: Gateway, context: FigureContext) => Promise<number>,
): Promise<readonly Round[]> {
  const { plan, progress } = context;
  const rounds: Round[] = [];
  for (let round = 1; round <= plan.rounds; round += 1) {
    progress(`workers: ${measure.name}, round ${round} of ${plan.rounds}`);
    rounds.push(await inTurns(gateways, (gateway) => measure(gateway, context)));
  }
  return rounds;
}

async function inTurns(
  { none, one, two }: Gateways,
  measure: (gateway: Gateway) => Promise<number>,
): Promise<Round> {
  return { none: await measure(none), one: await measure(one), two: await measure(two) };
}

async function callsPerSecond(gateway: Gateway, { plan, driver }: FigureContext): Promise<number> {
  const load = { destination: gateway, request: chatRequest(), durationMs: plan.callsMs };
  const { calls, microseconds } = await driveCalls(
    { ...load, connections: throughputConnections },
    driver,
  );
  return (calls * 1_000_000) / microseconds;
}

function describeCpu(rounds: readonly Round[]): readonly Figure[] {
  const cpu = { unit: "us", title: "CPU of a chat call, all processes" };
  return [
    { ...cpu, name: "workers.cpu_none", title: `${cpu.title} in one`, ...medianOf(rounds, "none") },
    {
      ...cpu,
      name: "workers.cpu_one",
      title: `${cpu.title}, 1 worker`,
      ...medianOf(rounds, "one"),
      comparison: {
        kind: "growth",
        value: summarize(rounds.map(({ none, one }) => one / none)),
      },
    },
    {
      ...cpu,
      name: "workers.cpu_two",
      title: `${cpu.title}, 2 workers`,
      ...medianOf(rounds, "two"),
      comparison: { kind: "added", value: summarize(rounds.map(({ one, two }) => two - one)) },
      target: coordinationTarget,
    },
  ];
}

function describeRates(rounds: readonly Round[]): readonly Figure[] {
  const unit = "calls/s";
  return [
    {
      name: "workers.rate_one",
      title: "Chat calls a second, all cores, 1 worker",
      unit,
      ...medianOf(rounds, "one"),
      comparison: { kind: "growth", value: summarize(rounds.map(({ none, one }) => one / none)) },
    },
    {
      name: "workers.rate_two",
      title: "Chat calls a second, all cores, 2 workers",
      unit,
      ...medianOf(rounds, "two"),
      comparison: { kind: "growth", value: summarize(rounds.map(({ one, two }) => two / one)) },
    },
  ];
}

function medianOf(rounds: readonly Round[], kind: keyof Round): Pick<Figure, "sluice"> {
  return { sluice: summarize(rounds.map((round) => round[kind])).median };
}
