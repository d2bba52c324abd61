import { readFileSync, writeFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { startSimulator } from "../../simulator/simulator.ts";
import { startFaultProcess } from "../support/fault-process.ts";
import { simulatorUpstream, type UpstreamKind } from "../support/gateway.ts";
import type { Bomb } from "./bombs.ts";

/** A gateway in a process of its own, which is sent bombs. */
export interface BombGateway extends AsyncDisposable {
  send(bomb: Bomb): Promise<BombAnswer>;
  /** Milliseconds; since it was last asked. */
  longestHoldMs(): Promise<number>;
  /** What the process that serves has in memory. */
  memory(): MemoryUse;
  /** Begins to look for the peak anew. */
  resetPeak(): void;
}

export interface BombAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

export interface MemoryUse {
  readonly residentBytes: number;
  readonly peakBytes: number;
}

/** With the limits that a gateway has when its configuration says nothing about them. */
export async function startBombGateway(kind: UpstreamKind = "openai"): Promise<BombGateway> {
  const simulator = startSimulator();
  const family = kind === "bedrock" ? ", bedrock: { family: claude-4 }" : "";
  const embeddings = kind === "bedrock" ? ", bedrock: { family: titan-embed-v2 }" : "";
  const fault = await startFaultProcess({
    upstreams: `{ simulator: ${simulatorUpstream(simulator, kind)} }`,
    models: `
  chat-model: { kind: chat, context_window: 100000000, targets: [{ upstream: simulator, model: simulated-chat${family} }] }
  embedding-model: { kind: embedding, context_window: 100000000, targets: [{ upstream: simulator, model: simulated-embedding${embeddings} }] }`,
  });
  const pinging = new Worker(new URL("ping-loop.ts", import.meta.url), {
    workerData: { port: fault.port },
  });
  const proc = `/proc/${fault.serving.processPid}`;
  return {
    async send({ path, encoding, body }) {
      const response = await fetch(`${fault.serving.dataUrl}${path}`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${fault.key}`,
          "content-type": "application/json",
          ...(encoding !== undefined && { "content-encoding": encoding }),
        },
        body,
      });
      const { status, headers } = response;
      return { status, headers, text: await response.text() };
    },
    longestHoldMs: () =>
      new Promise((resolve) => {
        pinging.once("message", resolve);
        pinging.postMessage("longest");
      }),
    memory: () => readMemory(proc),
    resetPeak: () => writeFileSync(`${proc}/clear_refs`, "5"),
    async [Symbol.asyncDispose]() {
      await pinging.terminate();
      await fault[Symbol.asyncDispose]();
      await simulator[Symbol.asyncDispose]();
    },
  };
}

function readMemory(proc: string): MemoryUse {
  const status = readFileSync(`${proc}/status`, "utf8");
  const read = (name: string): number =>
    1024 * Number(new RegExp(`^${name}:\\s*(\\d+) kB$`, "m").exec(status)?.[1]);
  return { residentBytes: read("VmRSS"), peakBytes: read("VmHWM") };
}
