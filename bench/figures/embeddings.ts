import type { Figure } from "../figure.ts";
import { driveCalls } from "../load/drive-calls.ts";
import { embeddingsRequest } from "../load/requests.ts";
import { targets } from "../targets.ts";
import { ratios } from "./compare.ts";
import { alternate, type FigureContext } from "./context.ts";

/** The largest possible embeddings call, one at a time. */
export async function measureEmbeddings(context: FigureContext): Promise<readonly Figure[]> {
  const { plan, driver } = context;
  const request = embeddingsRequest();
  const rounds = await alternate(context, "embeddings", async (gateway) => {
    const durationMs = plan.embeddingsMs;
    const load = { destination: gateway, request, connections: 1, durationMs };
    const { p50 } = await driveCalls(load, driver);
    return p50 / 1_000;
  });
  return [
    {
      name: "embeddings.time",
      title: "Embeddings, 2048 inputs of 1024 dimensions",
      unit: "ms",
      ...ratios(rounds),
      target: targets.embeddings,
    },
  ];
}
