import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { Destination } from "../stand/stand.ts";
import { requestFor } from "./request-for.ts";
import type { LoadRequest } from "./requests.ts";

export interface CallLoad {
  readonly destination: Destination;
  readonly request: LoadRequest;
  /** The number of connections; each sends its next call after the complete answer to the last. */
  readonly connections: number;
  readonly durationMs: number;
  /**
   * Calls come at times of their own, so many a second, each on a free connection: `connections` is
   * the most of these. Latency counts from the intended time.
   */
  readonly perSecond?: number;
}

export interface Driver {
  /** The folder for files of the drivers. */
  readonly folder: string;
  readonly signal: AbortSignal;
}

const callResultSchema = z.strictObject({
  calls: z.int(),
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
export async function driveCalls(wanted: CallLoad, driver: Driver): Promise<CallResult> {
  const { destination, durationMs, perSecond } = wanted;
  const load = { ...wanted, request: requestFor(destination, wanted.request) };
  const isLong = durationMs >= shortestWrkMs;
  const usesWrk = loadGenerator() === "wrk" && isLong && perSecond === undefined;
  const run = usesWrk ? runWrk : runBundled;
  const result = callResultSchema.parse(JSON.parse(await run(load, driver)));
  if (result.calls === 0) throw new Error("no call of the load was answered");
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
  const headers = Object.entries(destination.headers).map(
    ([name, value]) => `wrk.headers["${name}"] = [==[${value}]==]`,
  );
  return `wrk.method = "POST"
wrk.body = [==[${request.body}]==]
wrk.headers["content-type"] = "application/json"
${headers.join("\n")}
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
  const { port, headers } = load.destination;
  const argument = JSON.stringify({ ...load, destination: { port, headers } });
  const name = load.perSecond === undefined ? "call-load.ts" : "paced-load.ts";
  const program = join(import.meta.dir, name);
  return runProgram([process.execPath, program, argument], driver.signal);
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
