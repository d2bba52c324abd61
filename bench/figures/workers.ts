import type { Figure } from "../figure.ts";
import { driveCalls } from "../load/drive-calls.ts";
import { chatRequest } from "../load/requests.ts";
import type { Gateway } from "../stand/stand.ts";
import { summarize } from "../statistics.ts";
import { cpuDuring, warmUp, type FigureContext } from "./context.ts";

const callConnections = 16;
const throughputConnections = 64;
/** What a call may cost more because two workers keep the same limits. */
const coordinationTarget = 10;

interface Round {
  readonly none: number;
  readonly one: number;
  readonly two: number;
  /** Two gateways with one worker each, which know nothing of each other, with half of the load each. */
  readonly apart: number;
}

/** Each has its part of the connections. */
type Gateways = Readonly<Record<keyof Round, readonly Gateway[]>>;

/** What the division into processes costs and gains: none, one worker and two in turns. */
export async function measureWorkers(context: FigureContext): Promise<readonly Figure[]> {
  const { stand, progress } = context;
  progress("workers: starting gateways");
  await using none = await stand.startFreshSluice({ workers: "none" });
  await using one = await stand.startFreshSluice({ workers: 1 });
  await using two = await stand.startFreshSluice({ workers: 2 });
  await using other = await stand.startFreshSluice({ workers: 1 });
  await using another = await stand.startFreshSluice({ workers: 1 });
  // Two loads of half the size, as those apart have.
  const gateways = { none: [none], one: [one], two: [two, two], apart: [other, another] };
  for (const gateway of [none, one, other, another]) await warmUp(gateway, context);
  // Each of its workers compiles its own code.
  for (const gateway of [two, two]) await warmUp(gateway, context);
  const cpu = await measureRounds(gateways, context, cpuOfCall);
  const rates = await measureRounds(gateways, context, callsPerSecond);
  return [...describeCpu(cpu), ...describeRates(rates)];
}

async function measureRounds(
  gateways: Gateways,
  context: FigureContext,
  measure: (gateways: readonly Gateway[], context: FigureContext) => Promise<number>,
): Promise<readonly Round[]> {
  const { plan, progress } = context;
  const rounds: Round[] = [];
  for (let round = 1; round <= plan.rounds; round += 1) {
    progress(`workers: ${measure.name}, round ${round} of ${plan.rounds}`);
    const { none, one, two, apart } = gateways;
    rounds.push({
      none: await measure(none, context),
      one: await measure(one, context),
      two: await measure(two, context),
      apart: await measure(apart, context),
    });
  }
  return rounds;
}

/** CPU time of a chat call, of all processes. */
async function cpuOfCall(
  gateways: readonly Gateway[],
  { plan, driver }: FigureContext,
): Promise<number> {
  const pids = new Set(gateways.flatMap((gateway) => gateway.pids()));
  const connections = callConnections / gateways.length;
  const load = { request: chatRequest(), connections, durationMs: plan.callsMs };
  const { cpu, result } = await cpuDuring({ pids: () => [...pids] }, () =>
    Promise.all(gateways.map((destination) => driveCalls({ ...load, destination }, driver))),
  );
  return cpu / result.reduce((sum, { calls }) => sum + calls, 0);
}

async function callsPerSecond(
  gateways: readonly Gateway[],
  { plan, driver }: FigureContext,
): Promise<number> {
  const connections = throughputConnections / gateways.length;
  const load = { request: chatRequest(), connections, durationMs: plan.callsMs };
  const results = await Promise.all(
    gateways.map((destination) => driveCalls({ ...load, destination }, driver)),
  );
  return results.reduce((sum, { calls, microseconds }) => sum + calls / microseconds, 0) * 1e6;
}

function describeCpu(rounds: readonly Round[]): readonly Figure[] {
  const title = "CPU of a chat call, all processes";
  const unit = "us";
  const growthOf = (kind: keyof Round, than: keyof Round): Pick<Figure, "comparison"> => ({
    comparison: {
      kind: "growth",
      value: summarize(rounds.map((round) => round[kind] / round[than])),
    },
  });
  const coordination = summarize(rounds.map(({ two, apart }) => two - apart));
  return [
    { name: "workers.cpu_none", title: `${title} in one`, unit, ...medianOf(rounds, "none") },
    {
      name: "workers.cpu_one",
      title: `${title}, 1 worker`,
      unit,
      ...medianOf(rounds, "one"),
      ...growthOf("one", "none"),
    },
    {
      name: "workers.cpu_two",
      title: `${title}, 2 workers`,
      unit,
      ...medianOf(rounds, "two"),
      ...growthOf("two", "one"),
    },
    {
      name: "workers.cpu_apart",
      title: `${title}, 2 gateways of 1 worker`,
      unit,
      ...medianOf(rounds, "apart"),
      ...growthOf("apart", "one"),
    },
    {
      name: "workers.coordination",
      title: "2 workers above 2 gateways: coordination of a call",
      unit,
      sluice: coordination.median,
      comparison: { kind: "added", value: coordination },
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
