import type { Figure } from "../figure.ts";
import { chatRequest, messagesRequest, responsesRequest, toolsRequest } from "../load/requests.ts";
import { benchModels } from "../models.ts";
import { targets } from "../targets.ts";
import { medians, pick, ratios } from "./compare.ts";
import { alternate, callCpu, warmUp, type FigureContext } from "./context.ts";
import { settledBytes } from "./memory.ts";

/** Other calls than the plain one, which nginx only forwards, too. */
const otherCalls = [
  {
    name: "two_targets",
    title: "CPU of a chat call, two targets",
    request: chatRequest(benchModels.twoTargets),
    target: targets.callWithTwoTargets,
  },
  {
    name: "responses",
    title: "CPU of the same call through Responses",
    request: responsesRequest(),
    target: targets.callInOtherDialects,
  },
  {
    name: "messages",
    title: "CPU of the same call through Messages",
    request: messagesRequest(),
    target: targets.callInOtherDialects,
  },
  { name: "tools", title: "CPU of a chat call with tools, 8 kB in", request: toolsRequest() },
] as const;

/** CPU of a gateway for one unstreamed chat call, and its memory after such calls. */
export async function measureCalls(context: FigureContext): Promise<readonly Figure[]> {
  const rounds = await alternate(context, "chat calls", async (gateway, own) => ({
    cpu: await callCpu(gateway, own),
    memory: await settledBytes(gateway),
  }));
  const cpu = pick(rounds, (round) => round.cpu);
  return [
    {
      name: "calls.cpu",
      title: "CPU of a chat call",
      unit: "us",
      ...ratios(cpu),
      target: targets.call,
    },
    {
      name: "calls.per_cpu_second",
      title: "Chat calls for one second of CPU",
      unit: "calls",
      ...medians(pick(cpu, (microseconds) => 1_000_000 / microseconds)),
    },
    {
      name: "calls.memory",
      title: "Memory after these calls",
      unit: "MB",
      ...medians(pick(rounds, ({ memory }) => memory / 1_000_000)),
    },
    ...(await measureOtherCalls(context)),
  ];
}

async function measureOtherCalls(context: FigureContext): Promise<readonly Figure[]> {
  const own = { ...context, stand: { ...context.stand, peers: [] } };
  const figures: Figure[] = [];
  for (const { request, ...figure } of otherCalls) {
    await warmUp(own.stand.sluice, own, request);
    const rounds = await alternate(own, figure.title, (gateway) => callCpu(gateway, own, request));
    figures.push({ ...figure, name: `calls.${figure.name}`, unit: "us", ...ratios(rounds) });
  }
  return figures;
}
