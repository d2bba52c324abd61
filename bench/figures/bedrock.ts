import type { Comparison, Figure } from "../figure.ts";
import { driveStreams } from "../load/drive-streams.ts";
import { chatRequest } from "../load/requests.ts";
import { benchModels } from "../models.ts";
import { summarize } from "../statistics.ts";
import { callCpu, cpuDuring, type FigureContext } from "./context.ts";

const callTarget = 1.35;
const chunkTarget = 1.1;

/** CPU of Sluice over the kind `bedrock` (signing, translation, frames), divided by `openai`'s. */
export async function measureBedrock(context: FigureContext): Promise<readonly Figure[]> {
  const calls = await measureRounds(context, "bedrock calls", (model) =>
    callCpu(context.stand.sluice, context, chatRequest(model)),
  );
  const chunks = await measureRounds(context, "bedrock chunks", (model) =>
    chunkCpu(context, model),
  );
  return [
    {
      name: "bedrock.call_cpu",
      title: "CPU of a chat call, kind bedrock by kind openai",
      ...describe(calls),
      target: callTarget,
    },
    {
      name: "bedrock.chunk_cpu",
      title: "CPU of a streamed chunk, kind bedrock by kind openai",
      ...describe(chunks),
      target: chunkTarget,
    },
  ];
}

interface Round {
  readonly openai: number;
  readonly bedrock: number;
}

async function measureRounds(
  { plan, progress }: FigureContext,
  subject: string,
  measure: (model: string) => Promise<number>,
): Promise<readonly Round[]> {
  await measure(benchModels.bedrock);
  const rounds: Round[] = [];
  for (let round = 1; round <= plan.rounds; round += 1) {
    progress(`${subject}: round ${round} of ${plan.rounds}`);
    const openai = await measure(benchModels.chat);
    rounds.push({ openai, bedrock: await measure(benchModels.bedrock) });
  }
  return rounds;
}

async function chunkCpu({ stand, plan, driver }: FigureContext, model: string): Promise<number> {
  const { sluice } = stand;
  const load = plan.streams;
  const openWithinMs = load.pauseMs * 5;
  const drive = { destination: sluice, load, model, openWithinMs, signal: driver.signal };
  const { cpu } = await cpuDuring(sluice, () => driveStreams(drive));
  return cpu / (load.streams * load.chunks);
}

function describe(rounds: readonly Round[]): Pick<Figure, "unit" | "sluice" | "comparison"> {
  const ratios = rounds.map(({ openai, bedrock }) => bedrock / openai);
  const comparison: Comparison = { kind: "kinds", value: summarize(ratios) };
  return { unit: "us", sluice: summarize(rounds.map(({ bedrock }) => bedrock)).median, comparison };
}
