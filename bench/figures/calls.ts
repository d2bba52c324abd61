import type { Figure } from "../figure.ts";
import { medians, pick, ratios } from "./compare.ts";
import { alternate, callCpu, type FigureContext } from "./context.ts";
import { settledBytes } from "./memory.ts";

const targetRatio = 4;

/** CPU of a gateway for one unstreamed chat call, and its memory after such calls. */
export async function measureCalls(context: FigureContext): Promise<readonly Figure[]> {
  const rounds = await alternate(context, "chat calls", async (gateway, own) => ({
    cpu: await callCpu(gateway, own),
    resident: await settledBytes(gateway),
  }));
  const cpu = pick(rounds, (round) => round.cpu);
  return [
    {
      name: "calls.cpu",
      title: "CPU of a chat call",
      unit: "us",
      ...ratios(cpu),
      target: targetRatio,
    },
    {
      name: "calls.per_cpu_second",
      title: "Chat calls for one second of CPU",
      unit: "calls",
      ...medians(pick(cpu, (microseconds) => 1_000_000 / microseconds)),
    },
    {
      name: "calls.resident",
      title: "Resident memory after these calls",
      unit: "MB",
      ...medians(pick(rounds, ({ resident }) => resident / 1_000_000)),
    },
  ];
}
