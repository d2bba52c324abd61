import type { Figure } from "../figure.ts";
import { driveStreams } from "../load/drive-streams.ts";
import { chatRequest } from "../load/requests.ts";
import { benchModels } from "../models.ts";
import type { Gateway } from "../stand/stand.ts";
import { summarize } from "../statistics.ts";
import { ratios } from "./compare.ts";
import { callCpu, cpuDuring, warmUp, type FigureContext } from "./context.ts";

const callTarget = 1.35;
const chunkTarget = 1.1;

/**
 * CPU of Sluice over the kind `bedrock` (signing, translation, frames): by that of nginx, which forwards
 * the same calls over `openai`, and by its own over `openai`.
 */
export async function measureBedrock(context: FigureContext): Promise<readonly Figure[]> {
  await warmUp(context.stand.sluice, context, chatRequest(benchModels.bedrock));
  const calls = await measureRounds(context, "bedrock calls", (gateway, model) =>
    callCpu(gateway, context, chatRequest(model)),
  );
  const chunkOf = (gateway: Gateway, model: string): Promise<number> =>
    chunkCpu(gateway, context, model);
  await chunkOf(context.stand.sluice, benchModels.bedrock);
  const chunks = await measureRounds(context, "bedrock chunks", chunkOf);
  return [
    ...describe(calls, { name: "call_cpu", title: "CPU of a chat call", target: callTarget }),
    ...describe(chunks, {
      name: "chunk_cpu",
      title: "CPU of a streamed chunk",
      target: chunkTarget,
    }),
  ];
}

interface Round {
  readonly nginx: number;
  readonly openai: number;
  readonly bedrock: number;
}

async function measureRounds(
  { stand, plan, progress }: FigureContext,
  subject: string,
  measure: (gateway: Gateway, model: string) => Promise<number>,
): Promise<readonly Round[]> {
  const rounds: Round[] = [];
  for (let round = 1; round <= plan.rounds; round += 1) {
    progress(`${subject}: round ${round} of ${plan.rounds}`);
    const nginx = await measure(stand.nginx, benchModels.chat);
    const openai = await measure(stand.sluice, benchModels.chat);
    rounds.push({ nginx, openai, bedrock: await measure(stand.sluice, benchModels.bedrock) });
  }
  return rounds;
}

async function chunkCpu(
  gateway: Gateway,
  { plan, driver }: FigureContext,
  model: string,
): Promise<number> {
  const load = plan.streams;
  const openWithinMs = load.pauseMs * 5;
  const drive = { destination: gateway, load, model, openWithinMs, signal: driver.signal };
  const { cpu } = await cpuDuring(gateway, () => driveStreams(drive));
  return cpu / (load.streams * load.chunks);
}

function describe(
  rounds: readonly Round[],
  { name, title, target }: { name: string; title: string; target: number },
): readonly [Figure, Figure] {
  const peers = new Map<string, number>();
  const byNginx = rounds.map(({ nginx, bedrock }) => ({ nginx, sluice: bedrock, peers }));
  const byOpenai = summarize(rounds.map(({ openai, bedrock }) => bedrock / openai));
  const figure = { name: `bedrock.${name}`, title: `${title}, kind bedrock`, unit: "us" };
  return [
    { ...figure, ...ratios(byNginx) },
    {
      name: `${figure.name}_by_openai`,
      title: `${figure.title} by kind openai`,
      unit: "us",
      sluice: summarize(rounds.map(({ bedrock }) => bedrock)).median,
      comparison: { kind: "kinds", value: byOpenai },
      target,
    },
  ];
}
