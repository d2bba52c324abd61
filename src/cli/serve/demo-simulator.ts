import type { Simulator } from "../../simulator/simulator.ts";

/** Slow enough to see that answers are streamed. */
const demoPace = { tokensPerSecond: 150, firstTokenDelayMs: 50 };

/** The provider of the demo. Loaded for a demo only, which shortens other starts. */
export async function startDemoSimulator(): Promise<Simulator> {
  const { startSimulator } = await import("../../simulator/simulator.ts");
  return startSimulator(demoPace);
}
