import type { Figure } from "../figure.ts";
import { driveStreams } from "../load/drive-streams.ts";
import { medians, ratioOf } from "./compare.ts";
import { alternate, cpuDuring, type FigureContext } from "./context.ts";

const targetRatio = 2;

/** CPU of a gateway for one chunk of a stream, with enough time between chunks to arrive singly. */
export async function measureChunks(context: FigureContext): Promise<readonly Figure[]> {
  const load = context.plan.streams;
  const { signal } = context.driver;
  const measured = await alternate(context, "streamed chunks", async (gateway) => {
    const drive = { destination: gateway, load, openWithinMs: load.pauseMs * 5, signal };
    const { cpu, result } = await cpuDuring(gateway, () => driveStreams(drive));
    return { cpu: cpu / (load.streams * load.chunks), perRead: result.events / result.reads };
  });
  const cpu = measured.map(({ nginx, sluice }) => ({ nginx: nginx.cpu, sluice: sluice.cpu }));
  const perRead = measured.map(({ nginx, sluice }) => ({
    nginx: nginx.perRead,
    sluice: sluice.perRead,
  }));
  return [
    {
      name: "chunks.cpu",
      title: "CPU of a streamed chunk",
      unit: "us",
      ...medians(cpu),
      comparison: ratioOf(cpu),
      target: targetRatio,
    },
    {
      name: "chunks.per_read",
      title: "Chunks that come in one read",
      unit: "chunks",
      ...medians(perRead),
    },
  ];
}
