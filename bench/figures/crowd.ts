import type { Figure } from "../figure.ts";
import { streamRounds } from "./chunks.ts";
import { medians, pick, ratios } from "./compare.ts";
import type { FigureContext } from "./context.ts";

const firstTargetMs = 60;
const perReadTarget = 1.05;
const opensPerSecond = 300;

/** As many streams as fill a core: do callers still get each chunk when it comes? */
export async function measureCrowd(context: FigureContext): Promise<readonly Figure[]> {
  const load = context.plan.crowd;
  const openWithinMs = (load.streams / opensPerSecond) * 1_000;
  const rounds = await streamRounds(context, "many streams", { load, openWithinMs });
  const subject = `${load.streams} streams`;
  return [
    {
      name: "crowd.first_p99",
      title: `First event of ${subject}, p99`,
      unit: "ms",
      ...medians(pick(rounds, ({ firstP99Ms }) => firstP99Ms)),
      target: firstTargetMs,
    },
    {
      name: "crowd.per_read",
      title: `Chunks that come in one read, ${subject}`,
      unit: "chunks",
      ...medians(pick(rounds, ({ perRead }) => perRead)),
      target: perReadTarget,
    },
    {
      name: "crowd.cpu",
      title: `CPU of a streamed chunk, ${subject}`,
      unit: "us",
      ...ratios(pick(rounds, ({ cpu }) => cpu)),
    },
  ];
}
