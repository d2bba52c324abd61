import type { Figure } from "../figure.ts";
import { driveCalls } from "../load/drive-calls.ts";
import { chatRequest } from "../load/requests.ts";
import type { Gateway } from "../stand/stand.ts";
import { medians, ratioOf } from "./compare.ts";
import { alternate, cpuDuring, type FigureContext } from "./context.ts";

const connections = 16;
const targetRatio = 4.5;

/** CPU of a gateway for one unstreamed chat call. */
export async function measureCalls(context: FigureContext): Promise<readonly Figure[]> {
  const { plan, driver } = context;
  const request = chatRequest();
  const pairs = await alternate(context, "chat calls", async (gateway: Gateway) => {
    const load = { destination: gateway, request, connections, durationMs: plan.callsMs };
    const { cpu, result } = await cpuDuring(gateway, () => driveCalls(load, driver));
    return cpu / result.calls;
  });
  const perCpuSecond = pairs.map((pair) => ({
    nginx: 1_000_000 / pair.nginx,
    sluice: 1_000_000 / pair.sluice,
  }));
  return [
    {
      name: "calls.cpu",
      title: "CPU of a chat call",
      unit: "us",
      ...medians(pairs),
      comparison: ratioOf(pairs),
      target: targetRatio,
    },
    {
      name: "calls.per_cpu_second",
      title: "Chat calls for one second of CPU",
      unit: "calls",
      ...medians(perCpuSecond),
    },
  ];
}
