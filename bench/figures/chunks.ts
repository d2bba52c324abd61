import type { Figure } from "../figure.ts";
import { driveStreams } from "../load/drive-streams.ts";
import type { StreamLoad } from "../plan.ts";
import type { Gateway } from "../stand/stand.ts";
import { targets } from "../targets.ts";
import { medians, pick, ratios } from "./compare.ts";
import { alternate, cpuDuring, type FigureContext, type Round } from "./context.ts";

/** CPU of a gateway for one chunk of a stream, with enough time between chunks to arrive singly. */
export async function measureChunks(context: FigureContext): Promise<readonly Figure[]> {
  const load = context.plan.streams;
  const rounds = await streamRounds(context, "streamed chunks", {
    load,
    openWithinMs: load.pauseMs * 5,
  });
  return [
    {
      name: "chunks.cpu",
      title: "CPU of a streamed chunk",
      unit: "us",
      ...ratios(pick(rounds, ({ cpu }) => cpu)),
      target: targets.chunk,
    },
    {
      name: "chunks.per_read",
      title: "Chunks that come in one read",
      unit: "chunks",
      ...medians(pick(rounds, ({ perRead }) => perRead)),
    },
  ];
}

interface Streams {
  readonly load: StreamLoad;
  /** The time over which they are opened. */
  readonly openWithinMs: number;
}

interface StreamsMeasured {
  /** Of one chunk, in microseconds. */
  readonly cpu: number;
  readonly perRead: number;
  /** The 99th percentile of the time to a stream's first event. */
  readonly firstP99Ms: number;
}

/** By these a gateway compiles the code of streams, which calls have not run. */
const warmUpRounds = 2;

/** Streams through each gateway in turn. */
export async function streamRounds(
  context: FigureContext,
  subject: string,
  { load, openWithinMs }: Streams,
): Promise<readonly Round<StreamsMeasured>[]> {
  const measure = async (gateway: Gateway, { driver }: FigureContext): Promise<StreamsMeasured> => {
    const drive = { destination: gateway, load, openWithinMs, signal: driver.signal };
    const { cpu, result } = await cpuDuring(gateway, () => driveStreams(drive));
    return {
      cpu: cpu / (load.streams * load.chunks),
      perRead: result.events / result.reads,
      firstP99Ms: result.firstP99Ms,
    };
  };
  const warmUp = { ...context, plan: { ...context.plan, rounds: warmUpRounds } };
  await alternate(warmUp, `warm-up of ${subject}`, measure);
  return alternate(context, subject, measure);
}
