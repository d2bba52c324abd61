import { startValkey, valkeyProgram, type ValkeyServer } from "../../test/support/valkey-server.ts";
import type { Figure } from "../figure.ts";
import { driveCalls } from "../load/drive-calls.ts";
import { chatRequest } from "../load/requests.ts";
import type { Gateway } from "../stand/stand.ts";
import { summarize } from "../statistics.ts";
import { callCpu, warmUp, type FigureContext } from "./context.ts";

const throughputConnections = 64;
/** CPU of the gateway for limits in Valkey, above that for limits in memory. */
const targetMicroseconds = 15;
const scriptsTarget = 1;

interface Round {
  /** CPU of a call with limits in memory, and with limits in Valkey. */
  readonly memory: number;
  readonly shared: number;
  /** CPU of the server, and scripts that it ran, for a call. */
  readonly server: number;
  readonly scripts: number;
  /** With two processes. */
  readonly sharedTwo: number;
  readonly rateOne: number;
  readonly rateTwo: number;
}

/** What limits in Valkey cost a call, in turns with limits in memory. */
export async function measureCoordinator(context: FigureContext): Promise<readonly Figure[]> {
  const { stand, plan, progress } = context;
  if (valkeyProgram === null) {
    progress("coordinator: neither Valkey nor Redis is installed");
    return [];
  }
  progress("coordinator: starting the server and the gateways");
  await using server = await startValkey();
  const limits = `{ store: "${server.url}", timeout: 5s }`;
  await using memory = await stand.startFreshSluice({});
  await using one = await stand.startFreshSluice({ limits });
  await using two = await stand.startFreshSluice({ processes: 2, limits });
  for (const gateway of [memory, one, two, two]) await warmUp(gateway, context);
  const rounds: Round[] = [];
  for (let round = 1; round <= plan.rounds; round += 1) {
    progress(`coordinator: round ${round} of ${plan.rounds}`);
    rounds.push({
      memory: await callCpu(memory, context),
      shared: await callCpu(one, context),
      sharedTwo: await callCpu(two, context),
      ...(await serverDuring(server, () => callsOf(one, context))),
      rateOne: await callsPerSecond(one, context),
      rateTwo: await callsPerSecond(two, context),
    });
  }
  return describe(rounds);
}

async function callsOf(destination: Gateway, { plan, driver }: FigureContext) {
  const load = { request: chatRequest(), connections: throughputConnections };
  return driveCalls({ ...load, destination, durationMs: plan.callsMs }, driver);
}

async function callsPerSecond(gateway: Gateway, context: FigureContext): Promise<number> {
  const { calls, microseconds } = await callsOf(gateway, context);
  return (calls / microseconds) * 1e6;
}

/** Each call that has ended has told its use; the load itself waits for none of that. */
async function serverDuring(server: ValkeyServer, load: () => Promise<{ readonly calls: number }>) {
  const before = await usageOf(server);
  const { calls } = await load();
  const after = await usageOf(server);
  return {
    server: (after.cpu - before.cpu) / calls,
    scripts: (after.scripts - before.scripts) / calls,
  };
}

async function usageOf(server: ValkeyServer): Promise<{ cpu: number; scripts: number }> {
  const report = String(await server.command("INFO", "everything"));
  const read = (pattern: RegExp): number => Number(pattern.exec(report)?.[1] ?? 0);
  const seconds = read(/used_cpu_user:([\d.]+)/) + read(/used_cpu_sys:([\d.]+)/);
  return { cpu: seconds * 1e6, scripts: read(/cmdstat_evalsha:calls=(\d+)/) };
}

function describe(rounds: readonly Round[]): readonly Figure[] {
  const medianOf = (kind: keyof Round): Pick<Figure, "sluice"> => ({
    sluice: summarize(rounds.map((round) => round[kind])).median,
  });
  const added = summarize(rounds.map(({ shared, memory }) => shared - memory));
  const rates = summarize(rounds.map(({ rateOne, rateTwo }) => rateTwo / rateOne));
  const growth = summarize(rounds.map(({ shared, sharedTwo }) => sharedTwo / shared));
  const cpu = "CPU of a chat call, limits in";
  const rate = "Chat calls a second, all cores, limits in Valkey,";
  return [
    { name: "coordinator.memory", title: `${cpu} memory`, unit: "us", ...medianOf("memory") },
    { name: "coordinator.shared", title: `${cpu} Valkey`, unit: "us", ...medianOf("shared") },
    {
      name: "coordinator.shared_two",
      title: `${cpu} Valkey, 2 processes`,
      unit: "us",
      ...medianOf("sharedTwo"),
      comparison: { kind: "growth", value: growth },
    },
    {
      name: "coordinator.cpu",
      title: "The coordinator of a call, in the gateway",
      unit: "us",
      sluice: added.median,
      comparison: { kind: "added", value: added },
      target: targetMicroseconds,
    },
    {
      name: "coordinator.server",
      title: "The coordinator of a call, in the server",
      unit: "us",
      ...medianOf("server"),
    },
    {
      name: "coordinator.scripts",
      title: "Scripts of a call",
      unit: "scripts",
      ...medianOf("scripts"),
      target: scriptsTarget,
    },
    {
      name: "coordinator.rate_one",
      title: `${rate} 1 process`,
      unit: "calls/s",
      ...medianOf("rateOne"),
    },
    {
      name: "coordinator.rate_two",
      title: `${rate} 2 processes`,
      unit: "calls/s",
      ...medianOf("rateTwo"),
      comparison: { kind: "growth", value: rates },
    },
  ];
}
