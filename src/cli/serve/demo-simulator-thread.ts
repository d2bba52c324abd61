import { startSimulator } from "../../../simulator/simulator.ts";

declare const self: Worker;

/** Slow enough to see that answers are streamed. */
const demoPace = { tokensPerSecond: 150, firstTokenDelayMs: 50 };

const { origin, credential } = startSimulator(demoPace);
self.postMessage({ origin, credential });
