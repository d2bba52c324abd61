import type { Figure } from "../figure.ts";
import { driveCalls } from "../load/drive-calls.ts";
import { chatRequest } from "../load/requests.ts";
import type { Gateway } from "../stand/stand.ts";
import { medians } from "./compare.ts";
import { alternate, type FigureContext } from "./context.ts";

const connections = 64;

/** Calls a second with all processes of the gateway on one core, if cores can be selected. */
export async function measureThroughput(context: FigureContext): Promise<readonly Figure[]> {
  if (Bun.which("taskset") === null) return [];
  const { plan, driver } = context;
  const request = chatRequest();
  const rounds = await alternate(context, "calls on one core", async (gateway) => {
    const load = { destination: gateway, request, connections, durationMs: plan.callsMs };
    setCores(gateway, "0");
    try {
      const { calls, microseconds } = await driveCalls(load, driver);
      return (calls * 1_000_000) / microseconds;
    } finally {
      setCores(gateway, `0-${navigator.hardwareConcurrency - 1}`);
    }
  });
  return [
    {
      name: "throughput.one_core",
      title: "Chat calls a second on one core",
      unit: "calls/s",
      ...medians(rounds),
    },
  ];
}

function setCores(gateway: Gateway, cores: string): void {
  for (const pid of gateway.pids()) {
    Bun.spawnSync(["taskset", "--all-tasks", "--pid", "--cpu-list", cores, String(pid)]);
  }
}
