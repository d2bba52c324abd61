import type { Figure } from "../figure.ts";
import { chatRequest } from "../load/requests.ts";
import type { Gateway } from "../stand/stand.ts";
import { targets } from "../targets.ts";
import { alternate, callCpu, type FigureContext } from "./context.ts";
import { driveBoth, latencyFigures } from "./latency.ts";

/** More than calls that wait at any time, unless the gateway can't carry the load. */
const mostConnections = 256;
const loads = [
  { name: "at_sixth", title: "a sixth", share: 1 / 6, isJudged: false },
  { name: "at_half", title: "half", share: 1 / 2, isJudged: true },
] as const;

/**
 * Latency when calls come at their own times, whatever the answers do: a share of what one core
 * carries by the cost of a call. nginx gets as many calls as Sluice, and peers as many as they carry.
 */
export async function measurePaced(context: FigureContext): Promise<readonly Figure[]> {
  const { plan } = context;
  const carried = await callsPerCpuSecond(context);
  const figures: Figure[] = [];
  for (const { name, title, share, isJudged } of loads) {
    const rateOf = (gateway: Gateway): number => Math.ceil(carried(gateway) * share);
    const rate = rateOf(context.stand.sluice);
    const rounds = await alternate(context, `paced, ${title} of a core`, (gateway, own) => {
      const pace = { perSecond: rateOf(gateway), durationMs: plan.pacedMs };
      const load = { destination: gateway, request: chatRequest(), connections: mostConnections };
      return driveBoth({ ...load, ...pace }, own);
    });
    const subject = `${title} of a core (${rate} calls/s)`;
    const [median, tail] = latencyFigures(rounds, { name, subject, group: "paced" });
    figures.push(median, { ...tail, ...(isJudged && { target: targets.pacedP99AddedMs }) });
  }
  return figures;
}

async function callsPerCpuSecond(context: FigureContext): Promise<(gateway: Gateway) => number> {
  const once = { ...context, plan: { ...context.plan, rounds: 1 } };
  const [costs] = await alternate(once, "cost of a call", callCpu);
  return (gateway) => {
    const cost = costs?.peers.get(gateway.name) ?? costs?.sluice;
    if (cost === undefined) throw new Error("the cost of a call is not known");
    return 1_000_000 / cost;
  };
}
