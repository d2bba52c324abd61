import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { Destination } from "../stand/stand.ts";
import type { LoadRequest } from "./requests.ts";

export interface CallLoad {
  readonly destination: Destination;
  readonly request: LoadRequest;
  /** The number of connections; each sends its next call after the complete answer to the last. */
  readonly connections: number;
  readonly durationMs: number;
  /** Time between two calls of a connection, unless an answer takes longer; default: none. */
  readonly everyMs?: number;
}

export interface Driver {
  /** The folder for files of the drivers. */
  readonly folder: string;
  readonly signal: AbortSignal;
}

const callResultSchema = z.strictObject({
  calls: z.int().positive(),
  microseconds: z.number().positive(),
  failures: z.int(),
  p50: z.number(),
  p99: z.number(),
});

/** Latencies in microseconds. */
export type CallResult = z.infer<typeof callResultSchema>;

/** wrk takes whole seconds, and calls without pauses. */
const shortestWrkMs = 1_000;

export function loadGenerator(): "wrk" | "bundled" {
  return Bun.which("wrk") === null ? "bundled" : "wrk";
}

/** Calls in a closed loop, with wrk if possible. Throws if a call fails, which would cost less. */
export async function driveCalls(load: CallLoad, driver: Driver): Promise<CallResult> {
  const usesWrk =
    loadGenerator() === "wrk" && load.durationMs >= shortestWrkMs && load.everyMs === undefined;
  const run = usesWrk ? runWrk : runBundled;
  const result = callResultSchema.parse(JSON.parse(await run(load, driver)));
  if (result.failures > 0) throw new Error(`${result.failures} calls of the load failed`);
  return result;
}

async function runWrk(load: CallLoad, driver: Driver): Promise<string> {
  const { destination, connections, durationMs, request } = load;
  const script = join(driver.folder, `load-${crypto.randomUUID()}.lua`);
  writeFileSync(script, wrkScript(load));
  const duration = `${Math.round(durationMs / 1_000)}s`;
  const url = `http://127.0.0.1:${destination.port}${request.path}`;
  const connectionsText = String(connections);
  try {
    const output = await runProgram(
      ["wrk", "-t1", "-c", connectionsText, "-d", duration, "--timeout", "10s", "-s", script, url],
      driver.signal,
    );
    return output.slice(output.lastIndexOf("{"));
  } finally {
    rmSync(script);
  }
}

function wrkScript({ request, destination }: CallLoad): string {
  return `wrk.method = "POST"
wrk.body = [==[${request.body}]==]
wrk.headers["content-type"] = "application/json"
wrk.headers["authorization"] = "${destination.authorization}"
done = function(summary, latency)
  local errors = summary.errors
  local failures = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format(
    '\\n{"calls":%d,"microseconds":%d,"failures":%d,"p50":%d,"p99":%d}\\n',
    summary.requests, summary.duration, failures,
    latency:percentile(50), latency:percentile(99)))
end
`;
}

function runBundled(load: CallLoad, driver: Driver): Promise<string> {
  const program = join(import.meta.dir, "call-load.ts");
  return runProgram([process.execPath, program, JSON.stringify(load)], driver.signal);
}

async function runProgram(command: readonly string[], signal: AbortSignal): Promise<string> {
  const child = Bun.spawn([...command], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
    signal,
  });
  const output = await child.stdout.text();
  signal.throwIfAborted();
  if ((await child.exited) !== 0) throw new Error(`${command[0]} failed: ${output}`);
  return output;
}
